// A value that copies share until one of them changes it.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace ellipack {

// Copies are cheap: the first `write` on a shared copy copies the value. Different copies may be used from different
// threads.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() : shared_(std::make_shared<T>()) {}
  explicit(false) CopyOnWrite(T value) : shared_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const { return *shared_; }
  const T* operator->() const { return shared_.get(); }

  // Returns a reference for changes.
  T& write() {
    if (shared_.use_count() > 1) {
      shared_ = std::make_shared<T>(*shared_);
    } else {
      // Synchronize with reads through copies that other threads have released.
      std::atomic_thread_fence(std::memory_order_acquire);
    }
    return *shared_;
  }

 private:
  std::shared_ptr<T> shared_;
};

}  // namespace ellipack
