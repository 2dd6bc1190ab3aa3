/* A disk that refuses: preloaded, it counts every call that changes a file below one folder, and fails those it is told to.
 *
 * The control file is shared by all processes: count, first and last call to fail, errno, hits, the folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct control {
    uint32_t count, first, last, error, hits, only; /* only: 0 all, else a bit of KINDS */
    char folder[1000];
};
enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, MAKE = 16 };

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_FAULTS");
    int fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    void *found = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (found != MAP_FAILED)
        control = found;
}

static int fails(int kind, const char *path) {
    size_t length, whole = strlen(path);
    uint32_t number;
    if (!control || !control->folder[0] || (whole > 5 && !strcmp(path + whole - 5, ".fifo"))) /* a pipe has no disk */
        return 0;
    length = strlen(control->folder);
    if (strncmp(path, control->folder, length) || (control->only && !(control->only & kind)))
        return 0;
    number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (number < control->first || number > control->last)
        return 0;
    __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
    errno = control->error;
    return 1;
}

static int fails_fd(int kind, int fd) {
    char link[64], path[4096];
    ssize_t length;
    if (!control || fd < 3)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return fails(kind, path);
}

static int fails_at(int kind, int dir, const char *name) {
    char link[64], path[8192];
    ssize_t length;
    if (!control || !name)
        return 0;
    if (name[0] == '/')
        return fails(kind, name);
    if (dir == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    length = readlink(link, path, 4000);
    if (length <= 0)
        return 0;
    snprintf(path + length, sizeof path - length, "/%s", name);
    return fails(kind, path);
}

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
#define OPENED(flags, mode)                                                                                                    \
    mode_t mode = 0;                                                                                                           \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                                     \
        va_list more;                                                                                                          \
        va_start(more, flags);                                                                                                 \
        mode = va_arg(more, mode_t);                                                                                           \
        va_end(more);                                                                                                          \
    }

int open(const char *path, int flags, ...) {
    OPENED(flags, mode)
    if ((flags & O_CREAT) && fails_at(OPEN, AT_FDCWD, path))
        return -1;
    return NEXT(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    OPENED(flags, mode)
    if ((flags & O_CREAT) && fails_at(OPEN, AT_FDCWD, path))
        return -1;
    return NEXT(open64)(path, flags, mode);
}
int openat(int dir, const char *path, int flags, ...) {
    OPENED(flags, mode)
    if ((flags & O_CREAT) && fails_at(OPEN, dir, path))
        return -1;
    return NEXT(openat)(dir, path, flags, mode);
}
int openat64(int dir, const char *path, int flags, ...) {
    OPENED(flags, mode)
    if ((flags & O_CREAT) && fails_at(OPEN, dir, path))
        return -1;
    return NEXT(openat64)(dir, path, flags, mode);
}
ssize_t write(int fd, const void *data, size_t size) { return fails_fd(WRITE, fd) ? -1 : NEXT(write)(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return fails_fd(WRITE, fd) ? -1 : NEXT(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fails_fd(WRITE, fd) ? -1 : NEXT(pwrite64)(fd, data, size, at);
}
int ftruncate(int fd, off_t size) { return fails_fd(WRITE, fd) ? -1 : NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails_fd(WRITE, fd) ? -1 : NEXT(ftruncate64)(fd, size); }
int fsync(int fd) { return fails_fd(SYNC, fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails_fd(SYNC, fd) ? -1 : NEXT(fdatasync)(fd); }
int rename(const char *from, const char *to) { return fails_at(RENAME, AT_FDCWD, to) ? -1 : NEXT(rename)(from, to); }
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return fails_at(RENAME, to_dir, to) ? -1 : NEXT(renameat)(from_dir, from, to_dir, to);
}
int mkdir(const char *path, mode_t mode) { return fails_at(MAKE, AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode); }
int mkdirat(int dir, const char *path, mode_t mode) { return fails_at(MAKE, dir, path) ? -1 : NEXT(mkdirat)(dir, path, mode); }
int mkfifo(const char *path, mode_t mode) { return fails_at(MAKE, AT_FDCWD, path) ? -1 : NEXT(mkfifo)(path, mode); }
