// A library to preload: the n-th allocation with `new` in a thread fails, counted from a call of `fail_allocation`.

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local long remaining = 0;  // allocations until the one that fails; 0: none fails

void* allocate(std::size_t size, std::size_t alignment) {
  if (remaining > 0 && --remaining == 0) {
    throw std::bad_alloc();
  }
  const std::size_t rounded = (size + alignment) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

}  // namespace

// Lets the n-th allocation from now on fail; 0 lets none fail. Returns how many were left before the one that should
// have failed, 0 if it has failed.
extern "C" long fail_allocation(long n) {
  const long left = remaining;
  remaining = n;
  return left;
}

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
