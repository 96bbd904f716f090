// Makes SQLite's disk calls fail while the directory FAULTS has a file of their name: "sync" for fsync and fdatasync,
// "pwrite64", and "checkpoint" for pwrite64 to the database itself. Go's calls bypass the C library and are not affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *call) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("FAULTS"), call);
    return access(path, F_OK) == 0;
}

static int sync_with(const char *call, int file) {
    if (fails("sync")) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = dlsym(RTLD_NEXT, call);
    return real(file);
}

int fsync(int file) { return sync_with("fsync", file); }

int fdatasync(int file) { return sync_with("fdatasync", file); }

static int is_database(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 3 && strncmp(path + length - 3, ".db", 3) == 0;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    if (fails("pwrite64") || (fails("checkpoint") && is_database(file))) {
        errno = EROFS;
        return -1;
    }
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return real(file, bytes, count, offset);
}
