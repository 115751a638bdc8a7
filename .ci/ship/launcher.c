/* Quipu in one file: this program, and an archive behind it.

   It unpacks the archive once, where QUIPU_UNPACK_DIR says or into the user's cache, and runs what is in it from there.
   It is linked statically and the archive has a C library, so that it runs on any Linux, whatever C library that has. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#else
#include <sys/auxv.h>
#endif

/* At the end of the file: where the archive begins, and the name of the folder, 16 hexadecimal digits each. */
#define TRAILER 32
static char fresh[PATH_MAX]; /* what is being unpacked, empty before and after */
static volatile sig_atomic_t ended;

static int removed(const char *path, const struct stat *status, int kind, struct FTW *at) {
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static void discard(void) {
    if (*fresh) nftw(fresh, removed, 16, FTW_DEPTH | FTW_PHYS);
    *fresh = 0;
}

static void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    discard();
    fputs("quipu: ", stderr);
    vfprintf(stderr, format, values);
    fputs("\n", stderr);
    exit(1);
}

static void end(int number) { ended = number; }

static void join(char *path, const char *folder, const char *name) {
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) fail("%s: the name is too long", folder);
}

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int make_folders(char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -1;
}

/* Write the next `size` bytes of the archive to a file; return whether all went well. */
static int copied(gzFile archive, int file, long size) {
    static char piece[1 << 16];
    while (size > 0 && !ended) {
        int had = gzread(archive, piece, size < (long)sizeof piece ? (unsigned)size : sizeof piece);
        if (had <= 0 || write(file, piece, had) != had) return 0;
        size -= had;
    }
    return !ended;
}

/* Each entry is a line of kind, mode, size and name, and as many bytes: of a file, or the target of a link. */
static int unpacked(gzFile archive) {
    char line[PATH_MAX + 64], path[PATH_MAX], target[PATH_MAX];
    while (gzgets(archive, line, sizeof line)) {
        char kind;
        unsigned mode;
        long size;
        int name, whole = 0;
        if (sscanf(line, "%c %o %ld %n", &kind, &mode, &size, &name) != 3) return 0;
        line[strcspn(line, "\n")] = 0;
        join(path, fresh, line + name);
        if (kind == 'd') {
            whole = mkdir(path, 0700) == 0;
        } else if (kind == 'l' && size < PATH_MAX) {
            whole = gzread(archive, target, (unsigned)size) == size;
            target[size] = 0;
            whole = whole && symlink(target, path) == 0;
        } else if (kind == 'f') {
            int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
            whole = file >= 0 && copied(archive, file, size);
            if (file >= 0 && close(file)) whole = 0;
        }
        if (!whole) return 0;
    }
    return gzclose_r(archive) == Z_OK;
}

/* Unpack into a folder of its own and rename it: of several starters the first wins, the others have the same. */
static void unpack(int self, long at, char *where, const char *home) {
    umask(077);
    if (make_folders(where)) fail("cannot write to %s; QUIPU_UNPACK_DIR may name another folder", where);
    join(fresh, where, ".new.XXXXXX");
    if (!mkdtemp(fresh)) {
        *fresh = 0;
        fail("cannot write to %s; QUIPU_UNPACK_DIR may name another folder", where);
    }
    lseek(self, at, SEEK_SET);
    if (!unpacked(gzdopen(self, "rb"))) fail("cannot unpack into %s; QUIPU_UNPACK_DIR may name another folder", where);
#ifdef __linux__
    int folder = open(fresh, O_RDONLY | O_DIRECTORY);
    syncfs(folder);
    close(folder);
#else
    sync();
#endif
    if (rename(fresh, home) == 0)
        *fresh = 0;
    else if (errno != EEXIST && errno != ENOTEMPTY)
        fail("cannot move the unpacked files to %s; QUIPU_UNPACK_DIR may name another folder", home);
    discard();
}

static void name_self(char *path) {
#ifdef __APPLE__
    uint32_t size = PATH_MAX;
    if (_NSGetExecutablePath(path, &size)) fail("the name of this file is too long");
#else
    const char *name = (const char *)getauxval(AT_EXECFN);
    char folder[PATH_MAX];
    if (*name == '/')
        snprintf(path, PATH_MAX, "%s", name);
    else if (getcwd(folder, sizeof folder))
        join(path, folder, name);
#endif
}

int main(int count, char **arguments) {
    char self[PATH_MAX] = "", base[PATH_MAX], where[PATH_MAX], home[PATH_MAX], program[PATH_MAX];
    char trailer[TRAILER + 1] = "", *rest;
    name_self(self);
    int file = open(self, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("cannot read %s", self);
    if (lseek(file, -TRAILER, SEEK_END) < 0 || read(file, trailer, TRAILER) != TRAILER) fail("%s is cut short", self);
    const char *id = trailer + TRAILER / 2;
    if (strspn(trailer, "0123456789abcdef") != TRAILER) fail("%s is cut short", self);

    if (setting("QUIPU_UNPACK_DIR")) {
        snprintf(where, PATH_MAX, "%s", setting("QUIPU_UNPACK_DIR"));
    } else if (setting("XDG_CACHE_HOME")) {
        join(where, setting("XDG_CACHE_HOME"), "quipu");
    } else if (setting("HOME")) {
        join(base, setting("HOME"), ".cache");
        join(where, base, "quipu");
    } else {
        fail("QUIPU_UNPACK_DIR must name a folder to unpack into, for there is no HOME");
    }
    join(home, where, id);
    join(program, home, "quipu");

    if (access(program, X_OK)) {
        struct sigaction action = {.sa_handler = end}, before[3];
        const int signals[] = {SIGHUP, SIGINT, SIGTERM};
        mode_t mask = umask(0);
        for (int i = 0; i < 3; i++) sigaction(signals[i], &action, &before[i]);
        char start[TRAILER / 2 + 1] = "";
        memcpy(start, trailer, TRAILER / 2);
        unpack(file, strtol(start, &rest, 16), where, home);
        for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], NULL);
        umask(mask);
        if (access(program, X_OK)) fail("no program may run from %s; QUIPU_UNPACK_DIR may name another folder", where);
    }

    /* A client that is set up to start Quipu shall start this file, not what it was unpacked to. */
    setenv("QUIPU_PROGRAM", self, 1);
    char **command = calloc(count + 4, sizeof *command);
    int length = 0;
#ifdef LOADER
    join(base, home, "lib/" LOADER);
    if (snprintf(where, PATH_MAX, "%s/lib:%s/_internal", home, home) >= PATH_MAX) fail("%s: the name is too long", home);
    command[length++] = base;
    command[length++] = "--library-path";
    command[length++] = where;
    /* What PyInstaller's own start would set before it starts once more: here the libraries are found already. */
    setenv("_PYI_ARCHIVE_FILE", program, 1);
    setenv("_PYI_APPLICATION_HOME_DIR", where + strlen(home) + strlen("/lib:"), 1);
    setenv("_PYI_PARENT_PROCESS_LEVEL", "-1", 1);
#endif
    command[length++] = program;
    for (int i = 1; i < count; i++) command[length++] = arguments[i];
    execv(command[0], command);
    fail("no program may run from %s; QUIPU_UNPACK_DIR may name another folder", home);
}
