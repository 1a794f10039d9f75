// A value that copies share until one of them changes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace ellipack {

// Copies are cheap: the first `write` on a shared copy copies the value. Different copies may be used from different
// threads. A value counts its owners itself, since `std::shared_ptr::use_count` does not synchronize with the threads
// that have released their copies.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() : shared_(new Shared{}) {}
  explicit(false) CopyOnWrite(T value) : shared_(new Shared{.value = std::move(value)}) {}

  CopyOnWrite(const CopyOnWrite& other) noexcept : shared_(other.shared_) {
    shared_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  CopyOnWrite(CopyOnWrite&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  CopyOnWrite& operator=(CopyOnWrite other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~CopyOnWrite() {
    if (shared_ != nullptr && shared_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete shared_;
    }
  }

  const T& operator*() const { return shared_->value; }
  const T* operator->() const { return &shared_->value; }

  // Returns whether other copies share the value, so that `write` would copy it.
  bool is_shared() const { return shared_->owners.load(std::memory_order_acquire) > 1; }

  // Returns a reference for changes.
  T& write() {
    if (is_shared()) {
      *this = CopyOnWrite(shared_->value);
    }
    return shared_->value;
  }

 private:
  struct Shared {
    T value{};
    std::atomic<std::size_t> owners = 1;
  };

  Shared* shared_;  // null after a move
};

}  // namespace ellipack
