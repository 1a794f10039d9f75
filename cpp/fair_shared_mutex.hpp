// A reader-writer lock that serves threads in the order of their requests, so that no thread starves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ellipack {

// A ticket lock for std::shared_lock and std::unique_lock. Each thread takes the next ticket and waits until its number
// is served. A reader advances the number as soon as it holds the lock, a writer when it releases the lock.
class FairSharedMutex {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    changed_.wait(guard, [&] { return ticket == now_serving_ && readers_ == 0; });
  }

  void unlock() {
    const std::scoped_lock guard(mutex_);
    ++now_serving_;
    changed_.notify_all();
  }

  void lock_shared() {
    std::unique_lock guard(mutex_);
    const std::uint64_t ticket = next_ticket_++;
    changed_.wait(guard, [&] { return ticket == now_serving_; });
    ++now_serving_;
    ++readers_;
    changed_.notify_all();
  }

  void unlock_shared() {
    const std::scoped_lock guard(mutex_);
    if (--readers_ == 0) {
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t now_serving_ = 0;
  std::uint64_t readers_ = 0;
};

}  // namespace ellipack
