/* Counts, logs and fails the input and output of a process, in calls on files in one folder. Preload it.

   IO_FAULTS="AT ERROR MODE FOLDER": at the call with number AT, and in mode "always" at all later ones, the call fails
   with the error number ERROR; in mode "kill" the process is killed; in mode "count" nothing fails, and each call is
   logged. Another value starts counting again.
   IO_FAULTS_LOG: file to which successful changes are appended, one line for each.
   IO_FAULTS_READ_ONLY=FOLDER: everything outside this folder, except devices, is on a read-only file system. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FILES = 1024 };
static char tracked[MAX_FILES]; /* whether a descriptor is of a file in the folder */
static char plan[4352];
static char mode[16], folder[4096];
static long at, count;
static int error;

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static int is_active(void) {
    const char *now = getenv("IO_FAULTS");
    if (now == NULL) {
        return 0;
    }
    if (strcmp(now, plan) != 0) {
        strncpy(plan, now, sizeof plan - 1);
        sscanf(plan, "%ld %d %15s %4095[^\n]", &at, &error, mode, folder);
        count = 0;
    }
    return 1;
}

static int is_inside(const char *path) {
    return path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0;
}

static void log_line(const char *text, size_t size);

/* Returns whether the current call must fail. */
static int fails(void) {
    if (strcmp(mode, "count") == 0) {
        log_line("call\n", 5);
        return 0;
    }
    long number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (number < at || (number > at && strcmp(mode, "always") != 0)) {
        return 0;
    }
    if (strcmp(mode, "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    errno = error;
    return 1;
}

static int path_fails(const char *path) { return is_active() && is_inside(path) && fails(); }

static int file_fails(int file) {
    return file >= 0 && file < MAX_FILES && tracked[file] && is_active() && fails();
}

static unsigned long inode_of(int file) {
    struct stat found;
    return fstat(file, &found) == 0 ? found.st_ino : 0;
}

static void log_line(const char *text, size_t size) {
    const char *path = getenv("IO_FAULTS_LOG");
    int before = errno;
    if (path != NULL && is_active()) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0600);
        syscall(SYS_write, file, text, size);
        syscall(SYS_close, file);
    }
    errno = before;
}

static void log_write(int file, const void *data, size_t size, long start) {
    if (getenv("IO_FAULTS_LOG") == NULL) {
        return;
    }
    char *text = malloc(2 * size + 100);
    size_t length = (size_t)sprintf(text, "write\t%lu\t%ld\t", inode_of(file), start);
    for (size_t i = 0; i < size; i++) {
        length += (size_t)sprintf(text + length, "%02x", ((const unsigned char *)data)[i]);
    }
    text[length++] = '\n';
    log_line(text, length);
    free(text);
}

static void log_call(const char *format, ...) {
    char text[9000];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_line(text, (size_t)size);
}

static int is_read_only(const char *path) {
    const char *writable = getenv("IO_FAULTS_READ_ONLY");
    if (writable == NULL || strncmp(path, "/dev/", 5) == 0) {
        return 0;
    }
    return path[0] == '/' && strncmp(path, writable, strlen(writable)) != 0;
}

static int open_file(const char *path, int flags, mode_t permissions) {
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && is_read_only(path)) {
        errno = EROFS;
        return -1;
    }
    if (path_fails(path)) {
        return -1;
    }
    int is_new = access(path, F_OK) != 0;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, permissions);
    if (file >= 0 && file < MAX_FILES) {
        tracked[file] = (char)(is_active() && is_inside(path));
        if (tracked[file] && is_new && (flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE) {
            log_call("create\t%lu\t%s\n", inode_of(file), path);
        }
        if (tracked[file] && (flags & O_TRUNC)) {
            log_call("truncate\t%lu\t0\n", inode_of(file));
        }
    }
    return file;
}

#define OPEN(name)                                  \
    int name(const char *path, int flags, ...) {    \
        va_list arguments;                          \
        va_start(arguments, flags);                 \
        mode_t permissions = va_arg(arguments, mode_t); \
        va_end(arguments);                          \
        return open_file(path, flags, permissions); \
    }
OPEN(open)
OPEN(open64)

int close(int file) {
    if (file >= 0 && file < MAX_FILES) {
        tracked[file] = 0;
    }
    return (int)syscall(SYS_close, file);
}

ssize_t read(int file, void *data, size_t size) {
    return file_fails(file) ? -1 : syscall(SYS_read, file, data, size);
}

ssize_t write(int file, const void *data, size_t size) {
    if (file_fails(file)) {
        return -1;
    }
    long start = 0;
    int is_tracked = file >= 0 && file < MAX_FILES && tracked[file];
    if (is_tracked) {
        struct stat found;
        fstat(file, &found);
        start = fcntl(file, F_GETFL) & O_APPEND ? found.st_size : lseek(file, 0, SEEK_CUR);
    }
    ssize_t written = syscall(SYS_write, file, data, size);
    if (is_tracked && written > 0) {
        log_write(file, data, (size_t)written, start);
    }
    return written;
}

#define PWRITE(name)                                                      \
    ssize_t name(int file, const void *data, size_t size, off_t start) {  \
        if (file_fails(file)) {                                           \
            return -1;                                                    \
        }                                                                 \
        ssize_t written = syscall(SYS_pwrite64, file, data, size, start); \
        if (file >= 0 && file < MAX_FILES && tracked[file] && written > 0) { \
            log_write(file, data, (size_t)written, start);                \
        }                                                                 \
        return written;                                                   \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int file) {
    if (file_fails(file)) {
        return -1;
    }
    int result = (int)syscall(SYS_fsync, file);
    if (file >= 0 && file < MAX_FILES && tracked[file]) {
        struct stat found;
        fstat(file, &found);
        log_call(S_ISDIR(found.st_mode) ? "sync directory\n" : "sync\t%lu\n", found.st_ino);
    }
    return result;
}

#define FTRUNCATE(name)                                           \
    int name(int file, off_t size) {                              \
        if (file_fails(file)) {                                   \
            return -1;                                            \
        }                                                         \
        int result = (int)syscall(SYS_ftruncate, file, size);     \
        if (file >= 0 && file < MAX_FILES && tracked[file]) {     \
            log_call("truncate\t%lu\t%ld\n", inode_of(file), (long)size); \
        }                                                         \
        return result;                                            \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

int flock(int file, int operation) { return file_fails(file) ? -1 : (int)syscall(SYS_flock, file, operation); }

int rename(const char *from, const char *to) {
    if (is_read_only(to)) {
        errno = EROFS;
        return -1;
    }
    if (path_fails(to)) {
        return -1;
    }
    int result = REAL(int, "rename", const char *, const char *)(from, to);
    if (result == 0 && is_active() && is_inside(to)) {
        log_call("rename\t%s\t%s\n", from, to);
    }
    return result;
}

int unlink(const char *path) {
    if (is_read_only(path)) {
        errno = EROFS;
        return -1;
    }
    if (path_fails(path)) {
        return -1;
    }
    int result = REAL(int, "unlink", const char *)(path);
    if (result == 0 && is_active() && is_inside(path)) {
        log_call("unlink\t%s\n", path);
    }
    return result;
}

int mkdir(const char *path, mode_t permissions) {
    if (is_read_only(path)) {
        errno = EROFS;
        return -1;
    }
    return REAL(int, "mkdir", const char *, mode_t)(path, permissions);
}
