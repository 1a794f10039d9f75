// A reader-writer lock that serves threads in the order of their requests, so that no thread starves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "fork_gate.hpp"

namespace ellipack {

// A ticket lock for std::shared_lock and std::unique_lock. Each thread takes the next ticket and waits until its number
// is served. A reader advances the number as soon as it holds the lock, a writer when it releases the lock. The process
// does not fork while a thread holds the lock or waits for it. A thread may hold only one such lock at a time.
class FairSharedMutex {
 public:
  void lock() {
    fork_gate.enter();
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    changed_.wait(guard, [&] { return ticket == now_serving_ && readers_ == 0; });
  }

  void unlock() {
    {
      const std::scoped_lock guard(mutex_);
      ++now_serving_;
      changed_.notify_all();
    }
    fork_gate.leave();
  }

  void lock_shared() {
    fork_gate.enter();
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    changed_.wait(guard, [&] { return ticket == now_serving_; });
    ++now_serving_;
    ++readers_;
    changed_.notify_all();
  }

  void unlock_shared() {
    {
      const std::scoped_lock guard(mutex_);
      if (--readers_ == 0) {
        changed_.notify_all();
      }
    }
    fork_gate.leave();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t now_serving_ = 0;
  std::uint64_t readers_ = 0;
};

}  // namespace ellipack
