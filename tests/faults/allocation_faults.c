/* A library to preload: the n-th allocation of the process fails, counted from a call of `fail_allocation`.

   C++ allocates by malloc, and so does Python with PYTHONMALLOC=malloc. */
#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long remaining = 0; /* allocations until the one that fails; 0: none fails */

/* Lets the n-th allocation from now on fail; 0 lets none fail. Returns how many were left before the one that should
   have failed, 0 if it has failed. */
long fail_allocation(long n) { return __atomic_exchange_n(&remaining, n, __ATOMIC_SEQ_CST); }

static int fails(void) {
    if (__atomic_load_n(&remaining, __ATOMIC_RELAXED) == 0 ||
        __atomic_sub_fetch(&remaining, 1, __ATOMIC_SEQ_CST) != 0) {
        return 0;
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }

void *realloc(void *memory, size_t size) { return fails() ? NULL : __libc_realloc(memory, size); }

void *memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *allocated = memalign(alignment, size);
    if (allocated == NULL) {
        return ENOMEM;
    }
    *memory = allocated;
    return 0;
}
