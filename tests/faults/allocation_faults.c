/* A library to preload: the n-th allocation of the process fails, counted from a call of `fail_allocation`. Or each one
   fails in a forked child of its own, see `fork_at_allocations`.

   C++ allocates by malloc, and so does Python with PYTHONMALLOC=malloc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long remaining = 0; /* allocations until the one that fails; 0: none fails */

/* Lets the n-th allocation from now on fail; 0 lets none fail. Returns how many were left before the one that should
   have failed, 0 if it has failed. */
long fail_allocation(long n) { return __atomic_exchange_n(&remaining, n, __ATOMIC_SEQ_CST); }

static const char *folder, *moved_folder; /* of the run */
static int requests = -1, answers;        /* pipes to and from the process that observes the children; -1: no forks */
static long count, next_fork;
static unsigned max_seconds;
static char *record;
static long record_size;

/* Lets allocations fail in forked children. The process continues without a failure.

   Before allocation `next_fork`, or the first one after it while there is only one thread, the process sends its number
   and waits. (The child would have only one of several threads.) The observer moves the folder of the run away, puts a
   copy in its place, and answers 0. The process then forks a child, in which the allocation fails, and sends its status.
   After an answer of -k, the k-th allocation after that fails. The observer moves the folder back, and answers with the
   number of the next allocation. */
void fork_at_allocations(const char *run_folder, const char *moved, unsigned seconds, int request_pipe,
                         int answer_pipe) {
    folder = run_folder, moved_folder = moved, max_seconds = seconds, answers = answer_pipe;
    requests = request_pipe;
}

/* Writes 1 for each allocation while there is only one thread, and 0 for each other one. */
void record_allocations(char *characters, long size) { record_size = size, record = characters; }

/* Returns the number of allocations since then. */
long allocations(void) { return count; }

static void stop_if(int is_failed, const char *what) {
    if (is_failed) {
        perror(what);
        _exit(99);
    }
}

/* Opens the files of the moved folder again, in the copy. Otherwise the child would change those of its parent. */
static void open_copies(void) {
    char link[32], path[4096];
    struct stat file;
    size_t length = strlen(moved_folder);
    for (int descriptor = 3; descriptor < 64; descriptor++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t size = readlink(link, path, sizeof path - 1);
        if (size < (ssize_t)length || strncmp(path, moved_folder, length) != 0) {
            continue;
        }
        if (fstat(descriptor, &file) == 0 && file.st_nlink == 0) { /* a temporary file without a name */
            continue;
        }
        path[size] = 0;
        path[length - 1] = '.'; /* "./NAME" */
        int copy = open(path + length - 1, fcntl(descriptor, F_GETFL) | O_CLOEXEC);
        stop_if(copy < 0, path);
        lseek(copy, lseek(descriptor, 0, SEEK_CUR), SEEK_SET);
        if (strncmp(path + length, "/.", 2) == 0) { /* a lock or a temporary file, which are locked */
            flock(copy, LOCK_EX | LOCK_NB);
        }
        stop_if(dup3(copy, descriptor, O_CLOEXEC) < 0, path);
        close(copy);
    }
}

static int is_single_thread(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3; /* itself, its parent and a thread */
}

static long ask(long value) {
    long answer;
    stop_if(write(requests, &value, sizeof value) != sizeof value, "request");
    stop_if(read(answers, &answer, sizeof answer) != sizeof answer, "answer");
    return answer;
}

static int fails_in_child(void) {
    long number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    int error = errno, status;
    if (number <= record_size) {
        record[number - 1] = is_single_thread() ? '1' : '0';
    }
    if (requests >= 0 && number >= next_fork && is_single_thread()) {
        while ((next_fork = ask(number)) <= 0) {
            pid_t child = _Fork();
            stop_if(child < 0, "fork");
            if (child == 0) {
                requests = -1;
                alarm(max_seconds);
                stop_if(chdir(folder) != 0, folder);
                open_copies();
                remaining = -next_fork;
                errno = remaining ? error : ENOMEM;
                return remaining == 0;
            }
            stop_if(waitpid(child, &status, 0) != child, "wait");
            number = status;
        }
    }
    errno = error;
    return 0;
}

static int fails(void) {
    if (requests >= 0 || record_size > 0) {
        return fails_in_child();
    }
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
