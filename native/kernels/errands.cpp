#include "errands.hpp"

#include <unistd.h>

#include <utility>

namespace forebay {

Errands::~Errands() {
  stop();
  // Neither a thread that does not exist nor what it waits for can be destroyed.
  if (elsewhere()) static_cast<void>(shared_.release());
}

bool Errands::add(std::shared_ptr<Job> job) {
  if (elsewhere()) return false;
  const std::lock_guard<std::mutex> locked(shared_->lock);
  if (!shared_->worker) {
    process_ = ::getpid();
    auto worker = std::make_shared<Worker>();
    worker->thread = std::thread([shared = shared_.get(), me = worker.get()] { shared->work(*me); });
    shared_->worker = std::move(worker);
  }
  shared_->jobs.push_back(std::move(job));
  shared_->queued.notify_one();
  return true;
}

bool Errands::finish(Job& job, std::chrono::milliseconds patience) {
  using State = Job::State;
  if (elsewhere()) {
    if (job.state_ == State::kDone) return true;
    job.state_ = State::kDone;
  } else {
    std::unique_lock<std::mutex> locked(shared_->lock);
    if (job.state_ == State::kRunning) {
      return shared_->done.wait_for(locked, patience, [&] { return job.state_ == State::kDone; });
    }
    if (job.state_ == State::kDone) return true;
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
  shared_->done.wait(locked, [&] { return !shared_->worker || (shared_->jobs.empty() && shared_->running == 0); });
}

void Errands::stop() {
  if (elsewhere()) return;
  std::shared_ptr<Worker> worker;
  {
    const std::lock_guard<std::mutex> locked(shared_->lock);
    worker = std::move(shared_->worker);
    shared_->worker = nullptr;
    if (!worker) return;
    worker->stopping = true;
    // All of them: another may have been started meanwhile, and be waiting too.
    shared_->queued.notify_all();
    shared_->done.notify_all();
  }
  worker->thread.join();
}

bool Errands::elsewhere() const { return process_ != 0 && process_ != ::getpid(); }

void Errands::Shared::work(const Worker& me) {
  std::unique_lock<std::mutex> locked(lock);
  while (true) {
    queued.wait(locked, [&] { return me.stopping || !jobs.empty(); });
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
