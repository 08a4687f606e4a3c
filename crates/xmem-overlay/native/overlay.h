/* What the files of the preloaded library share.
 *
 * The library keeps what a process writes in a private folder. A folder of the user's in which something is written
 * gets a twin below `upper`, which is filled with symbolic links to the entries of the folder; a marker below `twins`
 * says that this is complete. From then on, paths into the folder lead to the twin. A link is replaced by a copy before
 * its file is written to, and by a twin before something is written into its folder. A link is told from those of the
 * user's by its target, which is the path at which it stands.
 *
 * Nothing here takes memory or a lock: `open` may be called in a signal handler, or between vfork and exec.
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

/* paths.c */

/* True if the library is to do anything at all in this process. */
bool is_active(void);
/* True if anything was written so far by any process, so that a path may lead into a twin. */
bool has_twins(void);
/* The private folder, or null. */
const char *overlay_folder(void);
/* The absolute path without links that a process means; false with errno if there is none. The last component need not
 * exist. */
bool resolve(int folder, const char *path, enum follow follow, path_t out);
/* True if what is written to a resolved path is kept. */
bool is_covered(const char *path);
/* Where a resolved path is found: in a twin, or where it says. */
void locate(const char *path, path_t out);
/* The path that a process should see for one that the kernel tells. */
void to_virtual(path_t path);
/* The path in place of one that is only read: the one given if nothing speaks against it. */
const char *for_reading(int folder, const char *path, enum follow follow, path_t out);
/* Joins the private folder, the name of a tree in it, and an absolute path. */
bool in_tree(const char *tree, const char *path, path_t out);
bool is_twin(const char *path);
void parent_of(const char *path, path_t out);
bool is_link_of_twin(const char *physical, const char *path);

/* twins.c */

/* Makes the twin of a folder. */
bool make_twin(const char *path);
/* Marks a folder that was made in a twin as complete. */
bool mark_twin(const char *path);
/* Replaces the link to a file by a copy, without its content if that is not needed. */
bool copy_up(const char *path, bool with_content);
/* Prepares a path for being written to with these flags of open(2), and gives the path to use. */
bool for_writing(int folder, const char *path, int flags, path_t out);
/* Prepares the entry itself for being made, removed or renamed, without looking through a link. `physical` is its path in
 * the twin of its folder, and `path` the resolved one; false if it is not covered (errno is 0) or that is impossible. */
bool for_entry(int folder, const char *given, path_t path, path_t physical);
/* Counts something that was removed. */
void count_removed(void);

#endif
