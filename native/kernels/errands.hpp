// What is done on a thread of its own while somebody else is busy with something else.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace forebay {

// Whoever made it keeps the memory that it works on there until it is done, or has never begun.
class Job {
 public:
  virtual ~Job() = default;

 private:
  friend class Errands;
  enum class State { kQueued, kRunning, kDone };

  virtual void run() = 0;

  State state_ = State::kQueued;
};

// A thread, or as many as are allowed, from when there is something to do until ``stop``; the next job starts others.
// What they have not begun with is done by whoever asks for it, so that nothing is waited for but what is under way. Any
// number of threads may use it.
class Errands {
 public:
  Errands() : shared_(std::make_unique<Shared>()) {}
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // So many threads at most from now on, instead of one: for what waits for a disk.
  void allow(std::size_t threads);

  // How many there may be.
  std::size_t allowed();

  // False if there is nobody to do it but whoever asks for it: in a forked process, and where no thread can be had.
  bool add(std::shared_ptr<Job> job);

  // Whether the job is done, which is waited for no longer than that.
  bool finish(Job& job, std::chrono::milliseconds patience);

  // Do the job here and now if nobody has begun with it; whether that was so.
  bool try_run(Job& job);

  // Whether the job is done already.
  bool is_done(const Job& job);

  // The job is not wanted any more: whether nobody will write to its memory from now on.
  bool withdraw(Job& job);

  // Returns once nothing is left to do.
  void settle();

  void stop();

 private:
  struct Worker {
    std::thread thread;
    bool stopping = false;
  };
  struct Shared {
    std::mutex lock;
    std::condition_variable queued;
    std::condition_variable done;
    std::deque<std::shared_ptr<Job>> jobs;
    std::deque<std::shared_ptr<Worker>> workers;
    std::size_t allowed = 1;
    std::size_t idle = 0;
    std::size_t running = 0;

    void work(const Worker& me);
  };

  bool start_worker();

  // Whether this is a forked process: the thread is not there, and locks may be held by it for ever.
  bool elsewhere() const;

  std::unique_ptr<Shared> shared_;
  std::atomic<pid_t> process_{0};
};

}  // namespace forebay
