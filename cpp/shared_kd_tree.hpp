// A kd-tree that threads share.
#pragma once

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "fair_shared_mutex.hpp"
#include "kd_tree.hpp"

namespace ellipack {

// Any number of threads may search the tree at the same time, or one may insert. Threads are served in the order of
// their calls. The process does not fork during a call.
class SharedKdTree {
 public:
  explicit SharedKdTree(std::size_t dimension) : tree_(dimension) {}
  explicit SharedKdTree(KdTree tree) : tree_(std::move(tree)) {}

  std::size_t dimension() const { return tree_.dimension(); }  // it never changes

  // Returns `function(tree)`, called while no thread inserts.
  template <typename Function>
  auto inspect(Function function) const {
    const std::shared_lock lock(mutex_);
    return function(tree_);
  }

  // Calls `function(tree)` while no other thread uses the tree.
  template <typename Function>
  void change(Function function) {
    const std::unique_lock lock(mutex_);
    function(tree_);
  }

 private:
  mutable FairSharedMutex mutex_;  // guards the tree
  KdTree tree_;
};

}  // namespace ellipack
