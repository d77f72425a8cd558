#include "errands.hpp"

#include <unistd.h>

#include <exception>
#include <utility>

namespace forebay {

Errands::~Errands() {
  stop();
  // Neither a thread that does not exist nor what it waits for can be destroyed.
  if (elsewhere()) static_cast<void>(shared_.release());
}

void Errands::allow(std::size_t threads) {
  if (elsewhere()) return;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  shared_->allowed = threads;
}

std::size_t Errands::allowed() {
  if (elsewhere()) return 1;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  return shared_->allowed;
}

bool Errands::add(std::shared_ptr<Job> job) {
  if (elsewhere()) return false;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  shared_->jobs.push_back(std::move(job));
  if (shared_->workers.size() < shared_->allowed && shared_->jobs.size() > shared_->idle && !start_worker() &&
      shared_->workers.empty()) {
    // Nobody would ever look at it: neither now, nor once the memory that it works on is gone.
    shared_->jobs.pop_back();
    return false;
  }
  shared_->queued.notify_one();
  return true;
}

// Whether there is one more. Not if the system has as many threads as it allows; the next job may find fewer.
bool Errands::start_worker() {
  auto& workers = shared_->workers;
  const std::size_t before = workers.size();
  process_ = ::getpid();
  try {
    workers.push_back(std::make_shared<Worker>());
    Worker* const worker = workers.back().get();
    worker->thread = std::thread([shared = shared_.get(), worker] { shared->work(*worker); });
    return true;
  } catch (const std::exception&) {
    workers.resize(before);
    return false;
  }
}

bool Errands::finish(Job& job, std::chrono::milliseconds patience) {
  if (try_run(job) || elsewhere()) return true;
  std::unique_lock<std::mutex> locked(shared_->lock);
  return shared_->done.wait_for(locked, patience, [&] { return job.state_ == Job::State::kDone; });
}

bool Errands::try_run(Job& job) {
  using State = Job::State;
  if (elsewhere()) {
    if (job.state_ == State::kDone) return false;
    job.state_ = State::kDone;
  } else {
    const std::lock_guard<std::mutex> locked(shared_->lock);
    if (job.state_ != State::kQueued) return false;
    // It stays in the queue, where it is passed over.
    job.state_ = State::kDone;
  }
  job.run();
  return true;
}

bool Errands::is_done(const Job& job) {
  if (elsewhere()) return job.state_ == Job::State::kDone;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  return job.state_ == Job::State::kDone;
}

bool Errands::withdraw(Job& job) {
  if (elsewhere()) return true;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  if (job.state_ == Job::State::kQueued) job.state_ = Job::State::kDone;
  return job.state_ == Job::State::kDone;
}

void Errands::settle() {
  if (elsewhere()) return;
  std::unique_lock<std::mutex> locked(shared_->lock);
  shared_->done.wait(locked, [&] { return shared_->workers.empty() || (shared_->jobs.empty() && shared_->running == 0); });
}

void Errands::stop() {
  if (elsewhere()) return;
  std::deque<std::shared_ptr<Worker>> workers;
  {
    const std::lock_guard<std::mutex> locked(shared_->lock);
    workers.swap(shared_->workers);
    for (const auto& worker : workers) worker->stopping = true;
    // All of them: others may have been started meanwhile, and be waiting too.
    shared_->queued.notify_all();
    shared_->done.notify_all();
  }
  for (const auto& worker : workers) worker->thread.join();
}

bool Errands::elsewhere() const { return process_ != 0 && process_ != ::getpid(); }

void Errands::Shared::work(const Worker& me) {
  std::unique_lock<std::mutex> locked(lock);
  while (true) {
    ++idle;
    queued.wait(locked, [&] { return me.stopping || !jobs.empty(); });
    --idle;
    if (me.stopping) return;
    const std::shared_ptr<Job> job = std::move(jobs.front());
    jobs.pop_front();
    if (job->state_ != Job::State::kQueued) {
      done.notify_all();  // Somebody may wait for nothing being left.
      continue;
    }
    job->state_ = Job::State::kRunning;
    ++running;
    locked.unlock();
    job->run();
    locked.lock();
    --running;
    job->state_ = Job::State::kDone;
    done.notify_all();
  }
}

}  // namespace forebay
