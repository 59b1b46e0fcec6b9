// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's kernel module, of VERSION and without a card: a synthetic one.
//
//     stand_in_card VERSION LOG COMMAND…
//
// runs COMMAND, and all that it starts, under ptrace. Where one of these programs opens
// /dev/nvidia* and the kernel says ENXIO (the node is there, the program may open it, and no driver
// has it), it gets a file descriptor, and its ioctls are answered here; every other error is the
// kernel's own. Its libraries also look for a loaded module first: /sys/module/nvidia/initstate and
// a line of /proc/modules are there. VERSION "none" answers nothing. LOG gets a line of each open
// and ioctl. The status is that of COMMAND; all it has started has ended by then.
//
// Runs as: root (to set a filter without no_new_privs, so that newuidmap works in what COMMAND
// starts).
//
// What is answered, by the numbers of NVIDIA's open kernel modules: the check of the version (210),
// a list of cards without a card (200), the system's parameters (202, 214), objects of a client
// (0x27, 0x29, 0x2b), the identities of GPUs that are there, none (control 0x201, 0x214). All else
// is NV_ERR_NOT_SUPPORTED, or EINVAL.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THREADS = 4096, PATH_BYTES = 64, VERSION_BYTES = 64, MAX_STRUCT = 16384 };
enum {
  CARD_INFO = 200,
  ENVIRONMENT = 202,  // until 390
  CHECK_VERSION = 210,
  TRANSFER = 211,
  SYSTEM_PARAMETERS = 214,
  ALLOC_MEMORY = 0x27,
  FREE = 0x29,
  CONTROL = 0x2a,
  ALLOC = 0x2b,
};
enum { BUILD_VERSION = 0x101, ATTACHED_IDS = 0x201, PROBED_IDS = 0x214 };
enum { NOT_SUPPORTED = 0x56 };

// A thread in the middle of an open.
struct thread {
  pid_t tid;
  enum { IDLE, OPENS, STARTS_AGAIN, OPENS_NULL, OPENS_MEMORY } state;
  uint64_t path;                 // where its text is
  char text[PATH_BYTES];         // the text
  struct user_regs_struct regs;  // before the call
};

static struct thread threads[MAX_THREADS];
static const char* version;
static FILE* log_file;

static void die(const char* what) {
  fprintf(stderr, "stand_in_card: %s: %s\n", what, strerror(errno));
  exit(99);
}

static struct thread* find_thread(pid_t tid) {
  struct thread* empty = NULL;
  for (int i = 0; i < MAX_THREADS; ++i) {
    if (threads[i].tid == tid) return &threads[i];
    if (threads[i].tid == 0 && empty == NULL) empty = &threads[i];
  }
  if (empty == NULL) {
    errno = EAGAIN;
    die("too many threads");
  }
  *empty = (struct thread){.tid = tid};
  return empty;
}

// ---- memory of a thread -------------------------------------------------------------------------

static int read_memory(pid_t tid, uint64_t at, void* data, size_t size) {
  struct iovec here = {data, size}, there = {(void*)at, size};
  return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

// Also of read-only pages.
static int write_memory(pid_t tid, uint64_t at, const void* data, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", tid);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t written = pwrite(fd, data, size, (off_t)at);
  close(fd);
  return written == (ssize_t)size;
}

static void read_text(pid_t tid, uint64_t at, char* text, size_t size) {
  size_t length = 0;
  while (length + 1 < size && read_memory(tid, at + length, text + length, 1) &&
         text[length] != '\0')
    ++length;
  text[length] = '\0';
}

// ---- answers ------------------------------------------------------------------------------------

static uint32_t word(const unsigned char* data, size_t at) {
  uint32_t value;
  memcpy(&value, data + at, sizeof value);
  return value;
}

static void set_word(unsigned char* data, size_t at, uint32_t value) {
  memcpy(data + at, &value, sizeof value);
}

// {command, reply, text}: EINVAL and the module's version if the text is another one. Command '2'
// asks for the version, '1' compares the first number alone.
static long check_version(unsigned char* data, size_t size) {
  if (size != 8 + VERSION_BYTES) return -EINVAL;
  char* text = (char*)data + 8;
  const uint32_t command = word(data, 0);
  const size_t compared = command == '1' ? strcspn(version, ".") + 1 : VERSION_BYTES;
  const int fits = command == '2' || strncmp(text, version, compared) == 0;
  memset(text, 0, VERSION_BYTES);
  memcpy(text, version, strnlen(version, VERSION_BYTES - 1));
  set_word(data, 4, 1);
  return fits ? 0 : -EINVAL;
}

// {size of the texts, driver's version, version, title, …}: the first two are the module's version.
static uint32_t tell_version(pid_t tid, uint64_t parameters) {
  unsigned char data[32];
  char text[VERSION_BYTES] = {0};
  if (!read_memory(tid, parameters, data, sizeof data)) return NOT_SUPPORTED;
  memcpy(text, version, strnlen(version, VERSION_BYTES - 1));
  const size_t size = word(data, 0) < VERSION_BYTES ? word(data, 0) : VERSION_BYTES;
  for (size_t at = 8; at < 32; at += 8) {
    uint64_t where;
    memcpy(&where, data + at, sizeof where);
    if (where != 0 && size != 0 && !write_memory(tid, where, text, size)) return NOT_SUPPORTED;
  }
  return 0;
}

// {client, object, command, flags, parameters, size, status}
static long control(pid_t tid, unsigned char* data, size_t size) {
  if (size < 32) return -EINVAL;
  uint64_t parameters;
  memcpy(&parameters, data + 16, sizeof parameters);
  const uint32_t command = word(data, 8), bytes = word(data, 24);
  uint32_t status = NOT_SUPPORTED;
  if ((command == ATTACHED_IDS || command == PROBED_IDS) && bytes <= MAX_STRUCT) {
    static unsigned char none[MAX_STRUCT];
    memset(none, 0xff, bytes);
    if (!write_memory(tid, parameters, none, bytes)) return -EFAULT;
    status = 0;
  }
  if (command == BUILD_VERSION && bytes == 40) status = tell_version(tid, parameters);
  fprintf(log_file, "  control 0x%x of %u bytes: status 0x%x\n", command, bytes, status);
  set_word(data, 28, status);
  return 0;
}

// {root, parent, new, class, parameters, …, status}: only a client can be made.
static long alloc(unsigned char* data, size_t size) {
  if (size < 32) return -EINVAL;
  static uint32_t handle = 0xc1d00000;
  const uint32_t class = word(data, 12);
  const int is_client = class == 0x0 || class == 0x1 || class == 0x41;
  if (is_client && word(data, 8) == 0) set_word(data, 8, ++handle);
  // {…, parameters (8), status} · {…, parameters (8), size, status} · {…, parameters, rights (8),
  // size, flags, status}
  const size_t status_at = size >= 48 ? 40 : size == 32 ? 28 : 24;
  fprintf(log_file, "  object of class 0x%x\n", class);
  set_word(data, status_at, is_client ? 0 : NOT_SUPPORTED);
  return 0;
}

static long answer(pid_t tid, unsigned number, unsigned char* data, size_t size) {
  switch (number) {
    case CHECK_VERSION:
      return check_version(data, size);
    case ENVIRONMENT:
    case CARD_INFO:
      memset(data, 0, size);
      return 0;
    case SYSTEM_PARAMETERS:
      memset(data, 0xff, size);
      return 0;
    case CONTROL:
      return control(tid, data, size);
    case ALLOC:
      return alloc(data, size);
    case FREE:
      if (size >= 16) set_word(data, 12, 0);
      return 0;
    default:
      return -EINVAL;
  }
}

static long answer_ioctl(pid_t tid, uint32_t command, uint64_t argument) {
  static unsigned char data[MAX_STRUCT];
  unsigned number = command & 0xff;
  size_t size = command >> 16 & 0x3fff;
  if (number == TRANSFER && size == 16) {  // {number, size, where}
    if (!read_memory(tid, argument, data, size)) return -EFAULT;
    number = word(data, 0);
    size = word(data, 4);
    memcpy(&argument, data + 8, sizeof argument);
  }
  if (size > sizeof data) return -EINVAL;
  if (size != 0 && !read_memory(tid, argument, data, size)) return -EFAULT;
  const long result = answer(tid, number, data, size);
  if (size != 0 && !write_memory(tid, argument, data, size)) return -EFAULT;
  fprintf(log_file, "ioctl %u (0x%x) of %zu bytes: %ld\n", number, number, size, result);
  return result;
}

// ---- files of a loaded module -------------------------------------------------------------------

static int is_initstate(const char* path) {
  return strcmp(path, "/sys/module/nvidia/initstate") == 0;
}

static int is_of_module(const char* path) {
  return is_initstate(path) || strcmp(path, "/proc/modules") == 0;
}

// The content of such a file into one in memory.
static void write_of_module(pid_t tid, int fd, const char* path) {
  char name[64], line[512];
  snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
  FILE* out = fopen(name, "we");
  if (out == NULL) return;
  if (is_initstate(path)) {
    fputs("live\n", out);
  } else {
    fputs("nvidia 1000000 1 - Live 0x0000000000000000 (POE)\n", out);
    FILE* in = fopen(path, "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) fputs(line, out);
    if (in != NULL) fclose(in);
  }
  fclose(out);
}

// ---- stops of a thread --------------------------------------------------------------------------

static int is_null(pid_t tid, int fd) {
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
  return stat(path, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

// Before a call of the filter. Returns how the thread goes on.
static int before_call(struct thread* thread) {
  struct user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, thread->tid, 0, &regs) != 0) return PTRACE_CONT;
  if (regs.orig_rax == SYS_ioctl) {
    if (!is_null(thread->tid, (int)regs.rdi)) return PTRACE_CONT;
    regs.rax = (uint64_t)answer_ioctl(thread->tid, (uint32_t)regs.rsi, regs.rdx);
    regs.orig_rax = (uint64_t)-1;
    ptrace(PTRACE_SETREGS, thread->tid, 0, &regs);
    return PTRACE_CONT;
  }
  if (thread->state == STARTS_AGAIN) {
    thread->state = OPENS_NULL;
    return PTRACE_SYSCALL;
  }
  const int has_directory = regs.orig_rax != SYS_open && regs.orig_rax != SYS_access;
  thread->path = has_directory ? regs.rsi : regs.rdi;
  read_text(thread->tid, thread->path, thread->text, sizeof thread->text);
  const int opens = regs.orig_rax == SYS_open || regs.orig_rax == SYS_openat;
  thread->regs = regs;
  if (opens && strncmp(thread->text, "/dev/nvidia", 11) == 0) {
    thread->state = OPENS;
    return PTRACE_SYSCALL;
  }
  if (!is_of_module(thread->text) || strcmp(version, "none") == 0) return PTRACE_CONT;
  if (opens) {
    thread->state = OPENS_MEMORY;
    regs.orig_rax = SYS_memfd_create;
    regs.rdi = thread->path;
    regs.rsi = 0;
  } else {
    regs.orig_rax = (uint64_t)-1;
    regs.rax = 0;
  }
  ptrace(PTRACE_SETREGS, thread->tid, 0, &regs);
  return opens ? PTRACE_SYSCALL : PTRACE_CONT;
}

// After an open. A node that no driver has is opened again as /dev/null, which is a node that every
// container has: the text of the path is another one meanwhile.
static int after_call(struct thread* thread) {
  struct user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, thread->tid, 0, &regs) != 0) return PTRACE_CONT;
  if (thread->state == OPENS && (long)regs.rax == -ENXIO && strcmp(version, "none") != 0 &&
      write_memory(thread->tid, thread->path, "/dev/null", sizeof "/dev/null")) {
    regs.rax = regs.orig_rax;
    regs.rip -= 2;
    ptrace(PTRACE_SETREGS, thread->tid, 0, &regs);
    thread->state = STARTS_AGAIN;
    return PTRACE_CONT;
  }
  if (thread->state == OPENS_NULL)
    write_memory(thread->tid, thread->path, thread->text, sizeof "/dev/null");
  if (thread->state == OPENS_MEMORY) {
    if ((long)regs.rax >= 0) write_of_module(thread->tid, (int)regs.rax, thread->text);
    regs.rdi = thread->regs.rdi;
    regs.rsi = thread->regs.rsi;
    ptrace(PTRACE_SETREGS, thread->tid, 0, &regs);
  }
  fprintf(log_file, "open %s: %ld\n", thread->text, (long)regs.rax);
  thread->state = IDLE;
  return PTRACE_CONT;
}

static void handle_stop(pid_t tid, int status) {
  struct thread* thread = find_thread(tid);
  const int number = WSTOPSIG(status), event = status >> 16;
  int how = thread->state == IDLE || thread->state == STARTS_AGAIN ? PTRACE_CONT : PTRACE_SYSCALL;
  long deliver = 0;
  if (event == PTRACE_EVENT_SECCOMP) {
    how = before_call(thread);
  } else if (event == PTRACE_EVENT_STOP) {
    if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
      how = PTRACE_LISTEN;
  } else if (number == (SIGTRAP | 0x80)) {
    how = after_call(thread);
  } else if (event == 0) {
    deliver = number;
  }
  ptrace(how, tid, 0, deliver);  // fails if the thread has died meanwhile, of which there is news
}

// ---- start --------------------------------------------------------------------------------------

#define FIELD(name) ((uint32_t)offsetof(struct seccomp_data, name))

// Calls with a path, and ioctl with commands of type 'F'.
static void set_filter(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 10),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_access, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat2, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(args[1])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'F' << 8, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) die("the filter");
}

static pid_t start(char** words) {
  int gate[2];
  if (pipe(gate) != 0) die("a pipe");
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    char byte;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 1) _exit(99);
    close(gate[0]);
    set_filter();
    execvp(words[0], words);
    perror(words[0]);
    _exit(127);
  }
  close(gate[0]);
  if (ptrace(PTRACE_SEIZE, child, 0,
             PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                 PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP |
                 PTRACE_O_EXITKILL) != 0)
    die("ptrace");
  if (write(gate[1], "", 1) != 1) die("the pipe");
  close(gate[1]);
  return child;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: stand_in_card VERSION LOG COMMAND…\n");
    return 99;
  }
  version = argv[1];
  log_file = fopen(argv[2], "we");
  if (log_file == NULL) die(argv[2]);
  setvbuf(log_file, NULL, _IOLBF, 0);
  fprintf(log_file, "A synthetic kernel module %s without a card, for tests.\n", version);
  const pid_t child = start(argv + 3);
  int result = 99, status;
  pid_t tid;
  while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
    if (tid <= 0) continue;
    if (WIFSTOPPED(status)) {
      handle_stop(tid, status);
      continue;
    }
    find_thread(tid)->tid = 0;
    if (tid == child) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}
