// A lock that many readers or one writer hold, granted in the order of asking: nobody waits forever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ellipack {

// A ticket lock for std::shared_lock and std::unique_lock. Each thread draws a ticket and enters when its number is
// called. A reader calls the next number on entering, a writer on leaving.
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
