// A gate that keeps all threads out of the cores while the process forks.
//
// A child has only the thread that forked. A core that another thread was changing would stay half changed, and locked,
// in the child. Therefore a fork waits until no thread holds the lock of a core, and threads wait to lock a core until
// the fork is over. A fork concerns the whole process, so that there is one gate for all cores.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace ellipack {

class ForkGate {
 public:
  // Waits while the process forks. Between `enter` and `leave` it does not fork.
  void enter() {
    inside_.fetch_add(1);
    while (forks_.load() > 0) {
      inside_.fetch_sub(1);
      wait_while([this] { return forks_.load() > 0; });
      inside_.fetch_add(1);
    }
  }

  void leave() { inside_.fetch_sub(1); }

  // Closes the gate and waits until no thread is inside.
  void close() {
    forks_.fetch_add(1);
    wait_while([this] { return inside_.load() > 0; });
  }

  // Opens the gate in the parent after a fork.
  void open() { forks_.fetch_sub(1); }

  // Opens the gate in the child, where no other thread exists.
  void open_in_child() {
    inside_.store(0);
    forks_.store(0);
  }

 private:
  // Forks are rare and short, so that polling is good enough. Unlike a condition variable, it leaves nothing behind in
  // the child.
  template <typename Condition>
  static void wait_while(Condition condition) {
    while (condition()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  std::atomic<int> inside_ = 0;
  std::atomic<int> forks_ = 0;
};

inline ForkGate fork_gate;

}  // namespace ellipack
