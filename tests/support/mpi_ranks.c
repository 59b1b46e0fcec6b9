// SPDX-License-Identifier: Apache-2.0
// Ranks that try what MPI programs live by, and check what comes of it.
//
//   mpi_ranks              one JSON object of rank 0 on its standard output; status 0 when each of
//                          its checks holds on every rank, but for "cma": without that MPI works
//   mpi_ranks time TURNS   for each line of rank 0's standard input one JSON object: microseconds of
//                          two ranks, ping-pong, one way, and allreduce; between the lines both sleep
//
// "mpi_ranks: …" on standard error is what did not hold, of whichever rank. A library that finds no
// launcher gives each rank a world of its own: "ranks" is 1 then, and there are several objects.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  kLarge = 1 << 20,  // past every limit of eager messages
  kNumbers = 1 << 16,
  kBlocks = 21,
};

static int rank, ranks, nodes;

static int complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "mpi_ranks: rank %d: ", rank);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return 0;
}

static unsigned char pattern(int of, int at) {
  return (unsigned char)(of * 31 + at * 7 + at / 4096);
}

// What each rank adds comes back to the first one, and a large message of each goes on unchanged.
static int ring(long* sum) {
  int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  long token = 0;
  if (rank != 0) MPI_Recv(&token, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  token += rank + 1;
  MPI_Request sent;
  MPI_Isend(&token, 1, MPI_LONG, next, 0, MPI_COMM_WORLD, &sent);
  if (rank == 0) MPI_Recv(sum, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  if (rank == 0 && *sum != (long)ranks * (ranks + 1) / 2)
    return complain("the ring gave %ld", *sum);

  unsigned char *ours = malloc(kLarge), *theirs = calloc(1, kLarge);
  for (int i = 0; i < kLarge; ++i) ours[i] = pattern(rank, i);
  MPI_Sendrecv(ours, kLarge, MPI_BYTE, next, 1, theirs, kLarge, MPI_BYTE, previous, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int good = 1;
  for (int i = 0; i < kLarge && good; ++i) {
    if (theirs[i] != pattern(previous, i)) good = complain("byte %d of %d is wrong", i, previous);
  }
  free(ours);
  free(theirs);
  return good;
}

static int allreduce(void) {
  double *ours = malloc(kNumbers * sizeof *ours), *sums = malloc(kNumbers * sizeof *sums);
  int good = 1;
  for (int count = 1; count <= kNumbers; count *= 256) {
    for (int i = 0; i < count; ++i) ours[i] = (rank + 1.0) * (i + 1);
    MPI_Allreduce(ours, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double factor = ranks * (ranks + 1.0) / 2;
    for (int i = 0; i < count && good; ++i) {
      if (sums[i] != factor * (i + 1)) good = complain("sum %d of %d is %g", i, count, sums[i]);
    }
  }
  free(ours);
  free(sums);
  return good;
}

// The ranks of a node read each other's memory, as CMA transports do.
static int read_neighbour(MPI_Comm node) {
  int at, count;
  MPI_Comm_rank(node, &at);
  MPI_Comm_size(node, &count);
  volatile long secret = 1000 + rank;
  long ours[2] = {getpid(), (long)&secret}, theirs[2], expected = 1000 + rank, read = 0;
  int next = (at + 1) % count, previous = (at + count - 1) % count;
  MPI_Sendrecv(ours, 2, MPI_LONG, next, 2, theirs, 2, MPI_LONG, previous, 2, node,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(&expected, 1, MPI_LONG, next, 3, previous, 3, node, MPI_STATUS_IGNORE);
  struct iovec to = {&read, sizeof read}, from = {(void*)theirs[1], sizeof read};
  int good = process_vm_readv((pid_t)theirs[0], &to, 1, &from, 1, 0) == sizeof read;
  if (!good) complain("process_vm_readv: %s", strerror(errno));
  if (good && read != expected) good = complain("process_vm_readv: %ld for %ld", read, expected);
  MPI_Barrier(node);  // `secret` is there until all have read
  return good;
}

// A window that is one memory of all ranks of a node.
static int share_memory(MPI_Comm node) {
  int at, count;
  MPI_Comm_rank(node, &at);
  MPI_Comm_size(node, &count);
  int* mine = NULL;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, node, &mine, &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  *mine = rank;
  MPI_Win_sync(window);
  MPI_Barrier(node);
  MPI_Win_sync(window);
  int good = 1;
  for (int i = 0; i < count; ++i) {
    MPI_Aint size;
    int unit, *theirs, whose = i == at ? rank : -1;
    MPI_Win_shared_query(window, i, &size, &unit, &theirs);
    MPI_Bcast(&whose, 1, MPI_INT, i, node);
    if (*theirs != whose) good = complain("shared memory of %d has %d", whose, *theirs);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  return good;
}

static int on_all(int good) {
  int all;
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all;
}

static const char* spelled(int good) {
  return good ? "true" : "false";
}

static int check(void) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int at, leads;
  MPI_Comm_rank(node, &at);
  leads = at == 0;
  MPI_Allreduce(&leads, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  long sum = 0;
  int rings = on_all(ring(&sum));
  int reduced = on_all(allreduce());
  int shares = on_all(share_memory(node));
  int reads = on_all(read_neighbour(node));
  MPI_Comm_free(&node);
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(library, &length);
  library[strcspn(library, ",\n")] = '\0';
  for (char* at_tab = library; (at_tab = strpbrk(at_tab, "\t\"\\")) != NULL;) *at_tab = ' ';
  Dl_info from = {0};
  dladdr((void*)MPI_Allreduce, &from);
  if (rank == 0) {
    printf(
        "{\"library\": \"%s\", \"file\": \"%s\", \"ranks\": %d, \"nodes\": %d, \"ring\": %ld, "
        "\"large\": %s, \"allreduce\": %s, \"shared_memory\": %s, \"cma\": %s}\n",
        library, from.dli_fname, ranks, nodes, sum, spelled(rings), spelled(reduced),
        spelled(shares), spelled(reads));
  }
  return rings && reduced && shares;
}

static void ping_pong(char* buffer, int size, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static void reduce(char* buffer, int size, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    MPI_Allreduce(buffer, buffer + kLarge, size / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

static int compare(const void* a, const void* b) {
  double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

// The median of some blocks: one in which a rank had to wait for its processor does not count.
static double microseconds(void (*work)(char*, int, int), char* buffer, int size, int rounds) {
  double blocks[kBlocks];
  int turns = rounds / kBlocks + 1;
  work(buffer, size, turns);  // connections are made, pages are there
  for (int i = 0; i < kBlocks; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    work(buffer, size, turns);
    blocks[i] = (MPI_Wtime() - begin) * 1e6 / turns;
  }
  qsort(blocks, kBlocks, sizeof *blocks, compare);
  return blocks[kBlocks / 2];
}

static void keep_to_processor(int number) {
  cpu_set_t all, own;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&own);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && seen++ == number) CPU_SET(cpu, &own);
  }
  if (CPU_COUNT(&own) == 1) sched_setaffinity(0, sizeof own, &own);
}

static void measure(char* buffer, int rounds) {
  if (rank == 0) printf("{");
  for (int size = 8; size <= kLarge; size *= 8) {
    int turns = size < 4096 ? rounds : rounds / (size / 2048);
    double there_and_back = microseconds(ping_pong, buffer, size, turns);
    double sum = microseconds(reduce, buffer, size, turns);
    if (rank != 0) continue;
    printf("%s\"ping-pong %d\": %.4f, \"allreduce %d\": %.4f", size == 8 ? "" : ", ", size,
           there_and_back / 2, size, sum);
  }
  if (rank == 0) printf("}\n");
  fflush(stdout);
}

// Whether there is another line: of rank 0's input, and rank 1 is told. Who waits in MPI takes a
// whole processor, which is the other ranks' meanwhile.
static int goes_on(void) {
  int more = 0;
  if (rank == 0) {
    char line[64];
    more = fgets(line, sizeof line, stdin) != NULL;
    MPI_Send(&more, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    return more;
  }
  for (int here = 0; !here;) {
    MPI_Iprobe(0, 1, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
    if (!here) usleep(2000);
  }
  MPI_Recv(&more, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return more;
}

static int measure_in_turns(int rounds) {
  if (ranks != 2) return complain("there are %d ranks, two are wanted", ranks);
  keep_to_processor(rank);
  char* buffer = calloc(2, kLarge);
  while (goes_on()) measure(buffer, rounds);
  free(buffer);
  return 1;
}

// MPICH before 4.2 may stay in MPI_Finalize for ever where ranks are on several nodes: the first to
// be done with the others waits in a PMI barrier, and no longer makes the progress by which these
// would be done with it (pmodels/mpich, pull request 6596).
static void finish(int good) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
  if (nodes > 1) {
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(NULL);
    _exit(good ? 0 : 1);
  }
#endif
  MPI_Finalize();
}

int main(int argc, char** argv) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // Yama; without it nobody asks
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int good = argc == 3 && !strcmp(argv[1], "time") ? measure_in_turns(atoi(argv[2])) : check();
  finish(good);
  return good ? 0 : 1;
}
