/* Copies of files, and what is to be done with a path that is written to. */
#include "overlay.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

static bool copy_by_hand(int from, int to)
{
    char buffer[32768];
    for (;;) {
        ssize_t size = syscall(SYS_read, from, buffer, sizeof buffer);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size == 0;
        for (ssize_t at = 0; at < size;) {
            ssize_t written = syscall(SYS_write, to, buffer + at, (size_t)(size - at));
            if (written < 0 && errno != EINTR)
                return false;
            at += written > 0 ? written : 0;
        }
    }
}

/* Shares the blocks where the file system can; else copies what is not a hole. */
static bool copy_content(int from, int to, off_t size)
{
    if (ioctl(to, FICLONE, from) == 0)
        return true;
    off_t end = 0;
    for (off_t start; end < size;) {
        start = syscall(SYS_lseek, from, end, SEEK_DATA);
        if (start < 0 && errno == ENXIO)
            break;
        end = start < 0 ? -1 : syscall(SYS_lseek, from, start, SEEK_HOLE);
        if (end < 0)
            goto by_hand;
        off64_t in = start, out = start;
        while (in < end) {
            ssize_t copied = syscall(SYS_copy_file_range, from, &in, to, &out, (size_t)(end - in), 0);
            if (copied == 0 && in >= size)
                break;
            /* Some file systems claim that there is nothing to copy. */
            if (copied <= 0 && !(copied < 0 && errno == EINTR)) {
                if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
                    return false;
                goto by_hand;
            }
        }
    }
    return syscall(SYS_ftruncate, to, size) == 0;
by_hand:
    syscall(SYS_ftruncate, to, 0);
    syscall(SYS_lseek, from, 0, SEEK_SET);
    syscall(SYS_lseek, to, 0, SEEK_SET);
    return copy_by_hand(from, to);
}

static void copy_extended_attributes(int from, int to)
{
    char names[2048], value[4096];
    ssize_t length = syscall(SYS_flistxattr, from, names, sizeof names);
    for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1) {
        ssize_t size = syscall(SYS_fgetxattr, from, name, value, sizeof value);
        if (size >= 0)
            syscall(SYS_fsetxattr, to, name, value, (size_t)size, 0);
    }
}

/* Copies a file to a new one. */
static bool copy_file(const char *path, const char *made, bool with_content)
{
    struct stat found;
    int to = (int)syscall(SYS_openat, AT_FDCWD, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    /* One that may be written to need not be readable if its content is not needed. */
    int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    bool good = to >= 0 && (from >= 0 || !with_content);
    if (good && with_content)
        good = syscall(SYS_fstat, from, &found) == 0 && copy_content(from, to, found.st_size);
    if (good && from >= 0)
        copy_extended_attributes(from, to);
    int failed = errno;
    if (from >= 0)
        syscall(SYS_close, from);
    if (to >= 0)
        syscall(SYS_close, to);
    errno = failed;
    return good;
}

bool copy_up(const char *path, bool with_content)
{
    path_t upper, made, target;
    struct stat found;
    if (!in_tree("upper", path, upper))
        return false;
    if (!is_link_of_twin(upper, path))
        return true;
    if (raw_stat(path, AT_SYMLINK_NOFOLLOW, &found) != 0)
        return false;
    if (S_ISDIR(found.st_mode))
        return make_twin(path);
    if (!S_ISLNK(found.st_mode) && !S_ISREG(found.st_mode))
        return true;
    if (!scratch(made))
        return false;
    bool good;
    if (S_ISLNK(found.st_mode)) {
        ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        good = length > 0 && syscall(SYS_symlinkat, target, AT_FDCWD, made) == 0;
    } else {
        good = copy_file(path, made, with_content);
    }
    if (good) {
        set_attributes(made, &found);
        struct lock lock = take_lock();
        /* Another may have been faster, and written to its copy. */
        good = !is_link_of_twin(upper, path) || put(made, upper, 0);
        return_lock(lock);
    }
    int failed = errno;
    syscall(SYS_unlinkat, AT_FDCWD, made, 0);
    errno = failed;
    return good;
}

static bool can_write(const char *physical)
{
    return syscall(SYS_faccessat, AT_FDCWD, physical, W_OK) == 0;
}

/* Resolves a path into a place; KEPT if it is covered. */
static enum fate find(int folder, const char *given, enum follow follow, struct place *place)
{
    place->folder = folder;
    place->given = given;
    if (!is_active() || !given || !*given)
        return PLAIN;
    if (!resolve(folder, given, follow, place->path, place->physical))
        return REFUSED;
    if (is_covered(place->path))
        return KEPT;
    /* The kernel does not know the links in twins. */
    if (!ends_as_folder(given)) {
        place->folder = AT_FDCWD;
        place->given = place->path;
    }
    return PLAIN;
}

/* Prepares the entry at a covered place. */
static bool prepare_entry(struct place *place, bool is_forced)
{
    path_t parent, where;
    struct stat found;
    parent_of(place->path, parent);
    locate(parent, where);
    if (raw_stat(where, 0, &found) != 0)
        return false;
    if (!S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return (is_forced || can_write(where)) && make_twin(parent) && in_tree("upper", place->path, place->physical);
}

enum fate for_entry(int folder, const char *given, struct place *place)
{
    place->fate = find(folder, given, KEEP_LINK, place);
    if (place->fate == KEPT && !prepare_entry(place, false))
        place->fate = REFUSED;
    return place->fate;
}

enum fate for_change(int folder, const char *given, enum follow follow, bool by_writers, struct place *place)
{
    struct stat found;
    place->fate = find(folder, given, follow, place);
    if (place->fate != KEPT)
        return place->fate;
    place->fate = REFUSED;
    if (raw_stat(place->physical, AT_SYMLINK_NOFOLLOW, &found) != 0)
        return REFUSED;
    bool is_owner = found.st_uid == geteuid() || geteuid() == 0;
    if (by_writers && S_ISREG(found.st_mode) && can_write(place->physical))
        is_owner = true;
    if (!is_owner) {
        errno = by_writers ? EACCES : EPERM;
        return REFUSED;
    }
    if (strcmp(place->path, "/") == 0)
        return place->fate = make_twin("/") && in_tree("upper", "", place->physical) ? KEPT : REFUSED;
    if (!prepare_entry(place, true) || !copy_up(place->path, true))
        return REFUSED;
    return place->fate = is_link_of_twin(place->physical, place->path) ? IGNORED : KEPT;
}

bool for_writing(int folder, const char *given, int flags, path_t out)
{
    struct place place;
    struct stat found;
    bool is_new = (flags & O_CREAT) && (flags & O_EXCL);
    if (!resolve(folder, given, (flags & O_NOFOLLOW) || is_new ? KEEP_LINK : FOLLOW_LINK, place.path, place.physical))
        return false;
    strcpy(out, place.physical);
    if (ends_as_folder(given)) {
        errno = flags & O_CREAT || raw_stat(out, 0, &found) != 0 || S_ISDIR(found.st_mode) ? EISDIR : ENOTDIR;
        return false;
    }
    if (!is_covered(place.path))
        return true;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return can_write(out) && make_twin(place.path) && in_tree("upper", place.path, out);
    bool is_there = raw_stat(out, AT_SYMLINK_NOFOLLOW, &found) == 0;
    /* The kernel says what is wrong with a folder or a link; pipes and devices are used as they are. */
    if (is_there ? is_new || !S_ISREG(found.st_mode) : !(flags & O_CREAT))
        return true;
    if (is_there && !can_write(out))
        return false;
    if (!prepare_entry(&place, is_there))
        return false;
    strcpy(out, place.physical);
    return copy_up(place.path, !(flags & O_TRUNC));
}

void count_removed(void)
{
    path_t file;
    if (!in_tree("removed", "", file))
        return;
    int before = errno;
    int to = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to >= 0) {
        syscall(SYS_fchmod, to, 0600);
        ssize_t written = syscall(SYS_write, to, ".", 1);
        (void)written;
        syscall(SYS_close, to);
    }
    errno = before;
}
