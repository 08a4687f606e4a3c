/* What the files of the preloaded library share.
 *
 * The library keeps what a process writes in a private folder. A folder of the user's in which something is written
 * gets a twin below `upper`, which is filled with symbolic links to the entries of the folder. From then on, paths into
 * the folder lead to the twin. A link is replaced by a copy before its file is written to, and by a twin before
 * something is written into its folder. A link is told from those of the user's by its target, which is the path at
 * which it stands. A twin that does not stand in another twin (a root) has a marker below `twins`, which is made when
 * the twin is complete; all folders in a twin are twins. Twins and copies are made in `build`, and get to their places
 * under a lock on the file `lock`. `removed` has one byte for each entry of the user's that was removed or renamed.
 *
 * Nothing here takes memory, as `open` may be called in a signal handler, or between vfork and exec. The lock is held
 * with signals blocked, and never while content is copied.
 */
#ifndef XMEM_OVERLAY_H
#define XMEM_OVERLAY_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* The next definition of a function, which is the C library's. */
#define NEXT(name)                                          \
    static __typeof__(&name) next_##name;                   \
    if (!next_##name)                                       \
        next_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

typedef char path_t[PATH_MAX];

enum follow { KEEP_LINK, FOLLOW_LINK };
#define LINK_OF(flags) ((flags)&AT_SYMLINK_NOFOLLOW ? KEEP_LINK : FOLLOW_LINK)

/* An entry as getdents64(2) gives it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char kind;
    char name[];
};

/* paths.c */

/* True if the library is to do anything at all in this process. */
bool is_active(void);
/* True if anything was written so far by any process, so that a path may lead into a twin. */
bool has_twins(void);
/* The private folder, or null. */
const char *overlay_folder(void);
/* True if what is written to a resolved path is kept. */
bool is_covered(const char *path);
/* Turns the path that the kernel tells into the one that a process should see; false if it is the same. */
bool to_virtual(path_t path);
/* The path behind a descriptor, as the kernel tells it. */
bool path_behind(int descriptor, path_t out);
/* Joins the private folder, the name of a tree in it, and an absolute path. */
bool in_tree(const char *tree, const char *path, path_t out);
void parent_of(const char *path, path_t out);
bool exists(const char *physical);
int raw_stat(const char *physical, int flags, struct stat *found);
bool ends_as_folder(const char *path);

/* walk.c */

/* Where the components of a path lead. */
enum state {
    /* To the user's file, and so is all below. */
    REAL,
    /* To the user's file, but there are twins below. */
    ABOVE_TWINS,
    /* Into a twin. */
    TWIN,
};

enum state state_of_top(void);
/* Goes on by a component; `path` includes it. */
void step(const char *path, enum state *state);
bool is_root(const char *path);
/* The absolute path without links that a process means, and where that is found (the same, or in a twin); false with
 * errno if there is none. The last component need not exist. */
bool resolve(int folder, const char *path, enum follow follow, path_t out, path_t physical);
/* Where a resolved path is found. */
void locate(const char *path, path_t physical);
/* The path in place of one that is only read: the one given if nothing speaks against it. */
const char *for_reading(int folder, const char *path, enum follow follow, path_t out);
bool is_link_of_twin(const char *physical, const char *path);

/* twins.c */

struct lock {
    int file;
    uint64_t signals;
};
struct lock take_lock(void);
void return_lock(struct lock lock);
/* Makes the twin of a folder. */
bool make_twin(const char *path);
/* A path for something that is being made, of which no other thread has the same. */
bool scratch(path_t out);
/* Makes owner, mode, and times those of another file. */
void set_attributes(const char *physical, const struct stat *like);
/* Moves what was made to its place in a twin, whose times stay. */
bool put(const char *made, const char *upper, unsigned flags);
/* True if there is a link to an entry of the user's anywhere in a twin. */
bool has_links(const char *path);

/* copies.c */

/* Replaces the link to a file by a copy, without its content if that is not needed. Pipes, sockets and devices stay. */
bool copy_up(const char *path, bool with_content);
/* Prepares a path for being opened for writing with these flags of open(2), and gives the path to use. */
bool for_writing(int folder, const char *path, int flags, path_t out);

/* What is to be done with a path. */
enum fate {
    /* Nothing: errno says why. */
    REFUSED,
    /* It is not covered: what was asked for, with the folder and path that are given back. */
    PLAIN,
    /* It is kept, at its physical path. */
    KEPT,
    /* It is a pipe, a socket or a device of the user's: as if it were done. */
    IGNORED,
};
struct place {
    enum fate fate;
    /* For PLAIN. */
    int folder;
    const char *given;
    path_t path;
    path_t physical;
};
/* Prepares the entry itself for being made, removed or renamed, without looking through a link. */
enum fate for_entry(int folder, const char *given, struct place *place);
/* Prepares a file or folder for a change of its attributes, which its owner may make, or one who can write to it. */
enum fate for_change(int folder, const char *given, enum follow follow, bool by_writers, struct place *place);
/* Counts something that was removed. */
void count_removed(void);

/* opens.c */

/* The path to open with these flags of open(2); null with errno if it cannot be. */
const char *path_to_open(int folder, const char *path, int flags, path_t buffer);

/* changes.c */

/* The path of an open file of the user's that is covered; false if there is none. */
bool path_of_real(int descriptor, path_t path);

/* programs.c */

/* Variables of the library as they were at the start, without their names: a script may change its own. */
const char *variable_at_start(const char *name);

#endif
