/* Folders and paths. */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkdir, content with a folder (or a link to one) that is there already. */
static int make_one(const char *path, mode_t mode)
{
    struct stat status;
    if (mkdir(path, mode) == 0)
        return 0;
    int reason = errno;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    errno = reason;
    return -1;
}

int folder_create(const char *path, mode_t mode, struct error *err)
{
    char *partial = strdup(path);
    if (!partial)
        return error_set(err, ERROR_MEMORY, "create folder %s: out of memory", path);
    int result = 0;
    for (char *slash = partial + 1; *partial && result == 0 && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        result = make_one(partial, mode);
        *slash = '/';
    }
    if (result == 0)
        result = make_one(partial, mode);
    if (result != 0)
        error_set_errno(err, "create folder", path);
    free(partial);
    return result;
}

/* Removes `name` in the open folder `parent`, a folder with all it holds. Returns 0 or -1 with errno. */
static int remove_at(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return -1;
    }
    int result = 0, reason = 0;
    const struct dirent *entry;
    while (result == 0 && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = remove_at(fd, entry->d_name);
    }
    reason = errno;
    closedir(folder);
    errno = reason;
    if (result == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        result = -1;
    return result;
}

int folder_remove(const char *path, struct error *err)
{
    if (remove_at(AT_FDCWD, path) != 0)
        return error_set_errno(err, "remove folder", path);
    return 0;
}

char *path_join(const char *folder, const char *name)
{
    if (name[0] == '/' || folder[0] == '\0')
        return strdup(name);
    size_t length = strlen(folder);
    const char *slash = folder[length - 1] == '/' ? "" : "/";
    char *path = NULL;
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

char *path_folder(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    while (end > 0 && path[end - 1] != '/')
        end--;
    while (end > 1 && path[end - 1] == '/')
        end--;
    return end ? strndup(path, end) : strdup(path[0] == '/' ? "/" : ".");
}

/* The XDG base directory rules: the variable counts only when it holds an absolute path. */
static char *user_folder(const char *variable, const char *below_home)
{
    char *path = NULL;
    const char *base = getenv(variable);
    if (base && base[0] == '/')
        return path_join(base, "rung");
    const char *home = getenv("HOME");
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (!home || home[0] != '/') {
        if (getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) != 0 || !found)
            return NULL;
        home = found->pw_dir;
    }
    return asprintf(&path, "%s/%s/rung", home, below_home) < 0 ? NULL : path;
}

char *path_cache_folder(void)
{
    return user_folder("XDG_CACHE_HOME", ".cache");
}

char *path_config_folder(void)
{
    return user_folder("XDG_CONFIG_HOME", ".config");
}
