// Detects which build of the core the processor supports. Compiled for the oldest supported processor.

#include <nanobind/nanobind.h>

namespace {

bool supports_x86_64_v3() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool supports_x86_64_v4() {
#if defined(__x86_64__)
  return supports_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace

NB_MODULE(_cpu, m) {
  m.doc() = "Capabilities of this processor.";
  m.def("supports_x86_64_v3", &supports_x86_64_v3, "Return whether this processor supports x86-64-v3 (AVX2).");
  m.def("supports_x86_64_v4", &supports_x86_64_v4, "Return whether this processor supports x86-64-v4 (AVX-512).");
}
