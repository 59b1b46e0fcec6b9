// SPDX-License-Identifier: Apache-2.0
// What a program of a container can make of a tree, and what it sees of one; for made_trees.py.
//
//   tree make      carries out the lines of standard input; what this user may not do is passed over
//   tree show DIR  prints a line for everything below DIR: all that a program can see of it
//
// Words are separated by blanks, names and values have %XX for what is not plain.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static char line[1 << 20];
static int line_number;

static void fail(const char* what) {
  fprintf(stderr, "tree: line %d: %s: %m\n", line_number, what);
  exit(1);
}

// What a user without privileges cannot have: owners, devices, capabilities.
static void may_be_denied(int result, const char* what) {
  if (result != 0 && errno != EPERM && errno != EACCES && errno != EINVAL && errno != EOPNOTSUPP) fail(what);
}

static int unhex(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

static size_t decode(char* text) {
  char* to = text;
  for (const char* from = text; *from != '\0'; ++from, ++to) {
    if (*from != '%') {
      *to = *from;
      continue;
    }
    *to = (char)(unhex(from[1]) << 4 | unhex(from[2]));
    from += 2;
  }
  *to = '\0';
  return (size_t)(to - text);
}

static void encode(const char* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    unsigned char c = (unsigned char)bytes[i];
    if (c > ' ' && c < 127 && c != '%') putchar(c);
    else printf("%%%02x", c);
  }
}

static void remove_tree(const char* path) {
  struct stat info;
  if (lstat(path, &info) != 0) return;
  if (S_ISDIR(info.st_mode)) {
    chmod(path, 0700);
    DIR* directory = opendir(path);
    if (directory == NULL) fail(path);
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
      if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
      char* below = NULL;
      if (asprintf(&below, "%s/%s", path, entry->d_name) < 0) fail(path);
      remove_tree(below);
      free(below);
    }
    closedir(directory);
    if (rmdir(path) != 0) fail(path);
  } else if (unlink(path) != 0) {
    fail(path);
  }
}

// "OFFSET:TEXT,OFFSET:TEXT": what lies between is a hole.
static void write_file(const char* path, char* parts, off_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (fd < 0) fail(path);
  for (char* part = strtok(parts, ","); part != NULL; part = strtok(NULL, ",")) {
    char* text = strchr(part, ':');
    if (text == NULL) break;
    *text++ = '\0';
    size_t length = decode(text);
    if (pwrite(fd, text, length, atoll(part)) != (ssize_t)length) fail(path);
  }
  if (ftruncate(fd, size) != 0 || close(fd) != 0) fail(path);
}

static void act(char** words) {
  const char* path = words[1];
  char verb = words[0][0];
  size_t length = 0;
  struct timespec times[2];
  switch (verb) {
    case 'd':
      if (mkdir(path, 0700) != 0) fail(path);
      break;
    case 'f':
      write_file(path, words[3], atoll(words[2]));
      break;
    case 'l':
      decode(words[2]);
      if (symlink(words[2], path) != 0) fail(path);
      break;
    case 'h':
      decode(words[2]);
      if (linkat(AT_FDCWD, words[2], AT_FDCWD, path, 0) != 0 && errno != ENOENT) fail(path);
      break;
    case 'n':  // NAME TYPE MAJOR MINOR
      may_be_denied(mknod(path, (words[2][0] == 'p'   ? S_IFIFO
                                 : words[2][0] == 'c' ? S_IFCHR
                                 : words[2][0] == 's' ? S_IFSOCK
                                                      : S_IFBLK) | 0640,
                          makedev(atoi(words[3]), atoi(words[4]))), path);
      break;
    case 'r':
      remove_tree(path);
      break;
    case 'v':
      decode(words[2]);
      if (rename(path, words[2]) != 0) fail(path);
      break;
    case 'o':
      if (lchown(path, (uid_t)atoll(words[2]), (gid_t)atoll(words[3])) != 0 && errno != ENOENT)
        may_be_denied(-1, path);
      break;
    case 'm':
      if (chmod(path, (mode_t)strtol(words[2], NULL, 8)) != 0 && errno != ENOENT) fail(path);
      break;
    case 'x':
      length = decode(words[3]);
      may_be_denied(lsetxattr(path, words[2], words[3], length, 0), path);
      break;
    case 'y':
      if (lremovexattr(path, words[2]) != 0 && errno != ENODATA) fail(path);
      break;
    case 't':
      times[0].tv_sec = 0;
      times[0].tv_nsec = UTIME_OMIT;
      times[1].tv_sec = atoll(words[2]);
      times[1].tv_nsec = atol(words[3]);
      if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) fail(path);
      break;
    default:
      errno = EINVAL;
      fail(words[0]);
  }
}

static int make(void) {
  umask(0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    char* words[8] = {0};
    int count = 0;
    ++line_number;
    line[strcspn(line, "\n")] = '\0';
    for (char* at = line; count < 8 && at != NULL; ++count) words[count] = strsep(&at, " ");
    decode(words[1]);
    act(words);
  }
  return 0;
}

struct seen {
  dev_t device;
  ino_t inode;
  char* path;
};
static struct seen* files;
static size_t file_count;

static const char* first_name(const struct stat* info, const char* path) {
  for (size_t i = 0; i < file_count; ++i) {
    if (files[i].device == info->st_dev && files[i].inode == info->st_ino) return files[i].path;
  }
  files = realloc(files, (file_count + 1) * sizeof *files);
  files[file_count++] = (struct seen){info->st_dev, info->st_ino, strdup(path)};
  return path;
}

static int by_text(const void* one, const void* other) {
  return strcmp(*(char* const*)one, *(char* const*)other);
}

static void show_attributes(const char* path) {
  char names[65536];
  static char value[65536];
  ssize_t length = llistxattr(path, names, sizeof names);
  char* sorted[4096];
  size_t count = 0;
  for (char* name = names; length > 0 && name < names + length && count < 4096; name += strlen(name) + 1) {
    if (strncmp(name, "trusted.", 8) != 0 && strcmp(name, "security.selinux") != 0) sorted[count++] = name;
  }
  qsort(sorted, count, sizeof *sorted, by_text);
  for (size_t i = 0; i < count; ++i) {
    ssize_t size = lgetxattr(path, sorted[i], value, sizeof value);
    printf(" %s=", sorted[i]);
    if (size > 0) encode(value, (size_t)size);
  }
}

static void show_content(const char* path, const struct stat* info) {
  uint64_t sum = 14695981039346656037u;
  int fd = open(path, O_RDONLY);
  static char block[65536];
  ssize_t got = -1;
  while (fd >= 0 && (got = read(fd, block, sizeof block)) > 0) {
    for (ssize_t i = 0; i < got; ++i) sum = (sum ^ (unsigned char)block[i]) * 1099511628211u;
  }
  printf(" size=%lld sum=%016llx", (long long)info->st_size, got < 0 ? 0ull : (unsigned long long)sum);
  if (fd >= 0) close(fd);
}

static void show(const char* path) {
  struct stat info;
  if (lstat(path, &info) != 0) fail(path);
  if (S_ISSOCK(info.st_mode)) return;  // no tar has one
  encode(path, strlen(path));
  printf(" %06o %u:%u %lld.%09ld", info.st_mode, info.st_uid, info.st_gid, (long long)info.st_mtim.tv_sec,
         info.st_mtim.tv_nsec);
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) printf(" device=%u:%u", major(info.st_rdev), minor(info.st_rdev));
  if (S_ISREG(info.st_mode)) show_content(path, &info);
  if (S_ISLNK(info.st_mode)) {
    char target[5000];
    ssize_t length = readlink(path, target, sizeof target);
    printf(" -> ");
    if (length > 0) encode(target, (size_t)length);
  }
  if (!S_ISDIR(info.st_mode)) {
    const char* first = first_name(&info, path);
    printf(" is=");
    encode(first, strlen(first));
  }
  // A list that a device or fifo inherits where it is made is in no layer.
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) show_attributes(path);
  putchar('\n');
  if (!S_ISDIR(info.st_mode)) return;
  struct dirent** entries;
  int count = scandir(path, &entries, NULL, NULL);
  char** names = calloc((size_t)(count < 0 ? 0 : count) + 1, sizeof *names);
  for (int i = 0; i < count; ++i) names[i] = strdup(entries[i]->d_name);
  qsort(names, (size_t)(count < 0 ? 0 : count), sizeof *names, by_text);
  for (int i = 0; i < count; ++i) {
    char* below = NULL;
    if (!strcmp(names[i], ".") || !strcmp(names[i], "..")) continue;
    if (asprintf(&below, "%s/%s", path, names[i]) < 0) fail(path);
    show(below);
    free(below);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && !strcmp(argv[1], "make")) return make();
  if (argc != 3 || strcmp(argv[1], "show") != 0) return 2;
  show(argv[2]);
  return 0;
}
