// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's MPS: by its name the control daemon ("nvidia-cuda-mps-control -f"), the
// program that talks to it ("nvidia-cuda-mps-control", commands on standard input), or a program
// that computes ("mps-client"). It speaks no protocol of NVIDIA's; the command line, the
// environment, the commands and the directories are theirs. As the real ones do it serves one user
// at a time, starts a server for him when he comes, and shares /dev/shm with who computes.
//
//   mps-client hold MIB [SECONDS]   takes so much memory of each GPU and says what it was kept to:
//                                   "held MIB cores PERCENT", or "out of memory" (status 1), or
//                                   "no mps" where it reaches no daemon
//
// The daemon obeys the file "mode" among its logs, which a test writes: "refuse" (it ends at once),
// "deaf" (it makes no socket).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostGpus = 16, kLine = 512 };

static double percent = 100;
static long limits[kMostGpus];  // MiB; 0: none
static pid_t server;
static uid_t server_user;

static const char* pipes(void) {
  const char* named = getenv("CUDA_MPS_PIPE_DIRECTORY");
  return named != NULL ? named : "/tmp/nvidia-mps";
}

static struct sockaddr_un address(void) {
  struct sockaddr_un out = {.sun_family = AF_UNIX};
  snprintf(out.sun_path, sizeof out.sun_path, "%s/control", pipes());
  return out;
}

static int call(void) {
  struct sockaddr_un to = address();
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr*)&to, sizeof to) == 0) return fd;
  return -1;
}

// One command, one answer.
static int ask(int fd, const char* text, char* answer) {
  if (send(fd, text, strlen(text), 0) < 0) return 0;
  ssize_t size = recv(fd, answer, kLine - 1, 0);
  if (size < 0) return 0;
  answer[size] = '\0';
  return 1;
}

static int talk(void) {
  char line[kLine], answer[kLine];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    int fd = call();
    if (fd < 0 || !ask(fd, line, answer)) {
      printf("Cannot find MPS control daemon process\n");
      return 1;
    }
    if (answer[0] != '\0') printf("%s\n", answer);
    close(fd);
  }
  return 0;
}

static int compute(int argc, char** argv) {
  char line[kLine], answer[kLine], name[64];
  if (argc < 3 || strcmp(argv[1], "hold") != 0) return 2;
  int fd = call();
  if (fd < 0) {
    printf("no mps\n");
    return 0;
  }
  // What one side writes to /dev/shm the other one must find there. The name is nobody else's:
  // containers share the directory, and process numbers repeat between them.
  strcpy(name, "/dev/shm/mps-stub-XXXXXX");
  int shared = mkostemp(name, O_CLOEXEC);
  snprintf(line, sizeof line, "client %s %s", argv[2], name);
  int answered = ask(fd, line, answer);
  if (shared >= 0) unlink(name);
  if (!answered) return 1;
  printf("%s\n", answer);
  fflush(stdout);
  if (strncmp(answer, "held", 4) != 0) return 1;
  if (argc > 3) sleep((unsigned)atoi(argv[3]));
  return 0;
}

static void start_server(uid_t user) {
  if (server > 0 && waitpid(server, NULL, WNOHANG) == 0) return;
  server = fork();
  server_user = user;
  if (server != 0) return;
  prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
  if (setresuid(user, user, user) != 0) _exit(1);
  for (;;) pause();
}

static void answer_client(const struct ucred* who, long mib, const char* shared, char* out) {
  if (access(shared, F_OK) != 0) {
    snprintf(out, kLine, "no shared memory");
    return;
  }
  if (server > 0 && server_user != who->uid) {
    snprintf(out, kLine, "busy with user %u", server_user);
    return;
  }
  start_server(who->uid);
  for (int i = 0; i < kMostGpus; ++i) {
    if (limits[i] != 0 && mib > limits[i]) {
      snprintf(out, kLine, "out of memory");
      return;
    }
  }
  snprintf(out, kLine, "held %ld cores %.1f", mib, percent);
}

static void obey(const struct ucred* who, char* line, char* out) {
  unsigned gpu = 0;
  long size = 0;
  char unit = 'M', shared[128];
  *out = '\0';
  if (sscanf(line, "client %ld %127s", &size, shared) == 2) {
    answer_client(who, size, shared, out);
  } else if (!strcmp(line, "get_server_list")) {
    if (server > 0) snprintf(out, kLine, "%d", (int)server);
  } else if (sscanf(line, "set_default_active_thread_percentage %lf", &percent) == 1 ||
             !strcmp(line, "get_default_active_thread_percentage")) {
    snprintf(out, kLine, "%.1f", percent);
  } else if (sscanf(line, "set_default_device_pinned_mem_limit %u %ld%c", &gpu, &size, &unit) == 3 &&
             gpu < kMostGpus && (unit == 'M' || unit == 'G')) {
    limits[gpu] = unit == 'G' ? size << 10 : size;
  } else if (sscanf(line, "get_default_device_pinned_mem_limit %u", &gpu) == 1 && gpu < kMostGpus) {
    snprintf(out, kLine, "%ldM", limits[gpu]);
  } else if (!strcmp(line, "get_visible_devices")) {  // of this stand-in alone
    snprintf(out, kLine, "%s", getenv("CUDA_VISIBLE_DEVICES"));
  } else if (strcmp(line, "quit") != 0) {
    snprintf(out, kLine, "Invalid command");
  }
}

static void read_mode(char* mode) {
  char path[256];
  snprintf(path, sizeof path, "%s/mode", getenv("CUDA_MPS_LOG_DIRECTORY"));
  FILE* file = fopen(path, "r");
  mode[0] = '\0';
  if (file == NULL) return;
  if (fscanf(file, "%31s", mode) != 1) mode[0] = '\0';
  fclose(file);
}

// As the manual has it: a daemon starts with the limits of its own environment.
static void read_environment(void) {
  const char* cores = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  const char* memory = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  unsigned gpu = 0;
  long size = 0;
  char unit = 0;
  if (cores != NULL) percent = atof(cores);
  while (memory != NULL && sscanf(memory, "%u=%ld%c", &gpu, &size, &unit) == 3) {
    if (gpu < kMostGpus) limits[gpu] = unit == 'G' ? size << 10 : size;
    memory = strchr(memory, ',');
    if (memory != NULL) ++memory;
  }
}

static int serve(void) {
  char mode[32], path[256], line[kLine], out[kLine];
  read_mode(mode);
  if (!strcmp(mode, "refuse")) {
    fprintf(stderr, "Failed to start: no device can be used\n");
    return 1;
  }
  while (!strcmp(mode, "deaf")) pause();
  read_environment();
  struct sockaddr_un at = address();
  int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  umask(0);
  if (bind(listening, (struct sockaddr*)&at, sizeof at) != 0 || listen(listening, 64) != 0) {
    fprintf(stderr, "An instance of this daemon is already running\n");
    return 1;
  }
  struct sockaddr_un more = at;  // of this stand-in nobody answers there
  strcat(more.sun_path, "_privileged");
  int privileged = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (bind(privileged, (struct sockaddr*)&more, sizeof more) != 0) return 1;
  snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", pipes());
  FILE* file = fopen(path, "w");
  if (file != NULL) {
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
  }
  for (;;) {
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    struct ucred who = {0};
    socklen_t size = sizeof who;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) continue;
    ssize_t got = recv(fd, line, sizeof line - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    obey(&who, line, out);
    send(fd, out, strlen(out), MSG_NOSIGNAL);
    close(fd);
    if (strcmp(line, "quit") != 0) continue;
    if (server > 0) kill(server, SIGKILL);
    unlink(at.sun_path);
    return 0;
  }
}

int main(int argc, char** argv) {
  const char* slash = strrchr(argv[0], '/');
  const char* name = slash != NULL ? slash + 1 : argv[0];
  if (!strcmp(name, "mps-client")) return compute(argc, argv);
  return argc > 1 && !strcmp(argv[1], "-f") ? serve() : talk();
}
