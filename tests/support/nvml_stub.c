// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1 that answers from a text file: $BERTH_NVML_STUB, else the file
// nvml.facts of the synthetic driver tree that this library lies in. Lines:
//   driver VERSION | cuda INT | mode hang|init-fail|crash|noise|garbage
//   gpu KEY=VALUE… name=TEXT      uuid, minor, pci, brand, cc, memory, mig; board: of several GPUs;
//                                 link=PCI,…: a link leads there; fabric: of NVSwitch; numa
//                                 busy: percent; used: bytes of memory; celsius; milliwatts;
//                                 process=PID:BYTES[:GI:CI],…: who computes on it; draws: as
//                                 process, of those who draw
//   slice KEY=VALUE… name=TEXT    uuid, gi, ci, memory, used; belongs to the gpu line before it
// The functions are those that Berth calls; the types follow NVML's public ABI.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  kOk = 0,
  kUninitialized = 1,
  kInvalid = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kTooSmall = 7,
  kDriverNotLoaded = 9
};

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gi, ci;
} process_info;

typedef struct {
  unsigned count;
  process_info all[8];
} process_list;

typedef struct device {
  char uuid[96], pci[32], name[96];
  unsigned minor, brand, cc_major, cc_minor, mig, gi, ci, is_slice;
  unsigned board, fabric, link_count;
  int numa;
  char links[8][32];
  int busy;  // percent and one; 0: not told
  unsigned long long memory, used;
  struct device* slices[16];
  unsigned slice_count;
  unsigned celsius, milliwatts;
  process_list computing, drawing;
} device;

typedef struct {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} pci_info;

typedef struct {
  unsigned long long total, free, used;
} memory_info;

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory_info_2;

typedef struct {
  unsigned gpu, memory;
} utilization;

typedef struct {
  unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
      sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;
} attributes;

static device all_gpus[32], all_slices[256];
static unsigned gpu_count, slice_count, cuda_version;
static char driver_version[96], mode[32];
static int ready;

// Truncates instead of failing: the facts are our own file.
static void set(char* out, size_t size, const char* text) {
  size_t length = strnlen(text, size - 1);
  memcpy(out, text, length);
  out[length] = '\0';
}

// A file of the tree that this library lies in.
static FILE* open_beside(const char* name, const char* how) {
  Dl_info info;
  if (dladdr((void*)open_beside, &info) == 0) return NULL;
  char path[4096];
  set(path, sizeof path - 160, info.dli_fname);
  for (char* slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
    strcpy(slash, "/SYNTHETIC");
    if (access(path, F_OK) == 0) {
      sprintf(slash, "/%s", name);
      return fopen(path, how);
    }
    *slash = '\0';
  }
  return NULL;
}

static FILE* open_facts(void) {
  const char* named = getenv("BERTH_NVML_STUB");
  return named != NULL ? fopen(named, "r") : open_beside("nvml.facts", "r");
}

static void read_links(const char* list, device* d) {
  while (*list != '\0' && d->link_count < 8) {
    size_t length = strcspn(list, ",");
    char* out = d->links[d->link_count++];
    set(out, length + 1 < 32 ? length + 1 : 32, list);
    list += length + (list[length] == ',');
  }
}

static void read_processes(const char* list, process_list* out) {
  while (*list != '\0' && out->count < 8) {
    process_info* one = &out->all[out->count++];
    one->gi = one->ci = ~0U;
    sscanf(list, "%u:%llu:%u:%u", &one->pid, &one->used, &one->gi, &one->ci);
    size_t length = strcspn(list, ",");
    list += length + (list[length] == ',');
  }
}

static void read_device(char* text, device* d) {
  char* name = strstr(text, " name=");
  if (name != NULL) {
    set(d->name, sizeof d->name, name + 6);
    *name = '\0';
  }
  for (char* word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
    char* value = strchr(word, '=');
    if (value == NULL) continue;
    *value++ = '\0';
    if (!strcmp(word, "uuid")) set(d->uuid, sizeof d->uuid, value);
    if (!strcmp(word, "pci")) set(d->pci, sizeof d->pci, value);
    if (!strcmp(word, "minor")) d->minor = (unsigned)atoi(value);
    if (!strcmp(word, "brand")) d->brand = (unsigned)atoi(value);
    if (!strcmp(word, "mig")) d->mig = (unsigned)atoi(value);
    if (!strcmp(word, "gi")) d->gi = (unsigned)atoi(value);
    if (!strcmp(word, "ci")) d->ci = (unsigned)atoi(value);
    if (!strcmp(word, "memory")) d->memory = strtoull(value, NULL, 10);
    if (!strcmp(word, "used")) d->used = strtoull(value, NULL, 10);
    if (!strcmp(word, "busy")) d->busy = atoi(value) + 1;
    if (!strcmp(word, "board")) d->board = (unsigned)atoi(value);
    if (!strcmp(word, "fabric")) d->fabric = (unsigned)atoi(value);
    if (!strcmp(word, "numa")) d->numa = atoi(value) + 1;
    if (!strcmp(word, "link")) read_links(value, d);
    if (!strcmp(word, "celsius")) d->celsius = (unsigned)atoi(value);
    if (!strcmp(word, "milliwatts")) d->milliwatts = (unsigned)atoi(value);
    if (!strcmp(word, "process")) read_processes(value, &d->computing);
    if (!strcmp(word, "draws")) read_processes(value, &d->drawing);
    if (!strcmp(word, "cc")) sscanf(value, "%u.%u", &d->cc_major, &d->cc_minor);
  }
}

static void read_line(char* line) {
  line[strcspn(line, "\n")] = '\0';
  if (!strncmp(line, "driver ", 7)) set(driver_version, sizeof driver_version, line + 7);
  if (!strncmp(line, "cuda ", 5)) cuda_version = (unsigned)atoi(line + 5);
  if (!strncmp(line, "mode ", 5)) set(mode, sizeof mode, line + 5);
  if (!strncmp(line, "gpu ", 4) && gpu_count < 32) read_device(line + 4, &all_gpus[gpu_count++]);
  if (!strncmp(line, "slice ", 6) && gpu_count > 0 && slice_count < 256) {
    device* parent = &all_gpus[gpu_count - 1];
    device* slice = &all_slices[slice_count++];
    read_device(line + 6, slice);
    slice->is_slice = 1;
    if (parent->slice_count < 16) parent->slices[parent->slice_count++] = slice;
  }
}

// Two gigabytes on standard output.
static void make_noise(void) {
  static char line[1 << 16];
  memset(line, '{', sizeof line);
  for (int i = 0; i < 1 << 15; ++i) {
    if (fwrite(line, 1, sizeof line, stdout) != sizeof line) return;
  }
}

int nvmlInit_v2(void) {
  FILE* file = open_facts();
  if (file == NULL) return kDriverNotLoaded;
  char line[1024];
  gpu_count = slice_count = 0;
  while (fgets(line, sizeof line, file) != NULL) read_line(line);
  fclose(file);
  if (!strcmp(mode, "hang")) {
    for (;;) pause();
  }
  if (!strcmp(mode, "init-fail")) return kDriverNotLoaded;
  if (!strcmp(mode, "crash")) raise(SIGSEGV);
  if (!strcmp(mode, "noise")) make_noise();
  ready = 1;
  return kOk;
}

int nvmlShutdown(void) {
  ready = 0;
  return kOk;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case kOk:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalid:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kTooSmall:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

static int copy(char* out, unsigned size, const char* text) {
  if (!ready) return kUninitialized;
  if (!strcmp(mode, "garbage")) {  // not even an end
    memset(out, '\033', size);
    return kOk;
  }
  if (strlen(text) + 1 > size) return kTooSmall;
  strcpy(out, text);
  return kOk;
}

int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return copy(out, size, driver_version);
}

// OLD_NVML: with the functions of driver 390 and of older ones.
#ifdef OLD_NVML
#define nvmlSystemGetCudaDriverVersion_v2 nvmlSystemGetCudaDriverVersion
#endif
int nvmlSystemGetCudaDriverVersion_v2(int* out) {
  *out = (int)cuda_version;
  return ready ? kOk : kUninitialized;
}

int nvmlDeviceGetCount_v2(unsigned* out) {
  *out = gpu_count;
  return ready ? kOk : kUninitialized;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device** out) {
  if (index >= gpu_count) return kInvalid;
  *out = &all_gpus[index];
  return kOk;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, device** out) {
  for (unsigned i = 0; i < gpu_count; ++i) {
    if (!strcmp(all_gpus[i].uuid, uuid)) {
      *out = &all_gpus[i];
      return kOk;
    }
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(device* d, char* out, unsigned size) {
  return copy(out, size, d->uuid);
}
int nvmlDeviceGetName(device* d, char* out, unsigned size) {
  return copy(out, size, d->name);
}

int nvmlDeviceGetMinorNumber(device* d, unsigned* out) {
  *out = d->minor;
  return d->is_slice ? kNotSupported : kOk;
}

#ifdef OLD_NVML
typedef struct {
  char busId[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
} pci_info_2;

int nvmlDeviceGetPciInfo_v2(device* d, pci_info_2* out) {
  const size_t zeros = strcspn(d->pci, ":") == 8 ? 4 : 0;  // four digits of the domain
  memset(out, 0xff, sizeof *out);
  set(out->busId, sizeof out->busId, d->pci + zeros);
  return kOk;
}
#else
int nvmlDeviceGetPciInfo_v3(device* d, pci_info* out) {
  memset(out, 0, sizeof *out);
  set(out->busId, sizeof out->busId, d->pci);
  return d->is_slice ? kNotSupported : kOk;
}
#endif

int nvmlDeviceGetMultiGpuBoard(device* d, unsigned* out) {
  *out = d->board != 0;
  return d->is_slice ? kNotSupported : kOk;
}

int nvmlDeviceGetBoardId(device* d, unsigned* out) {
  *out = d->board;
  return d->is_slice ? kNotSupported : kOk;
}

int nvmlDeviceGetMemoryAffinity(device* d, unsigned size, unsigned long* nodes, unsigned scope) {
  (void)scope;
  if (d->numa == 0 || size == 0) return kNotSupported;
  nodes[0] = 1UL << (d->numa - 1);
  return kOk;
}

int nvmlDeviceGetNvLinkState(device* d, unsigned link, unsigned* out) {
  *out = link < d->link_count;
  return link < 18 ? kOk : kInvalid;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(device* d, unsigned link, pci_info* out) {
  if (link >= d->link_count) return kNotSupported;
  memset(out, 0, sizeof *out);
  set(out->busId, sizeof out->busId, d->links[link]);
  return kOk;
}

int nvmlDeviceGetP2PStatus(device* d, device* other, unsigned what, unsigned* out) {
  const unsigned over_nvlink = 2;
  *out = what == over_nvlink && d->fabric != 0 && d->fabric == other->fabric ? 0 : 1;
  return kOk;
}

int nvmlDeviceGetBrand(device* d, unsigned* out) {
  *out = d->brand;
  return d->is_slice ? kNotSupported : kOk;
}

int nvmlDeviceGetCudaComputeCapability(device* d, int* major, int* minor) {
  *major = (int)d->cc_major;
  *minor = (int)d->cc_minor;
  return d->is_slice ? kNotSupported : kOk;
}

int nvmlDeviceGetMemoryInfo(device* d, memory_info* out) {
  const unsigned long long reserved = 1 << 20;  // this version counts it as used
  out->total = d->memory;
  out->used = d->used + reserved;
  out->free = out->total - out->used;
  return kOk;
}

int nvmlDeviceGetMemoryInfo_v2(device* d, memory_info_2* out) {
  if (out->version != (sizeof *out | 2 << 24)) return kInvalid;
  out->total = d->memory;
  out->used = d->used;
  out->reserved = 1 << 20;
  out->free = out->total - out->used - out->reserved;
  return kOk;
}

int nvmlDeviceGetUtilizationRates(device* d, utilization* out) {
  if (d->busy == 0 || d->mig || d->is_slice) return kNotSupported;
  out->gpu = (unsigned)d->busy - 1;
  out->memory = 0;
  return kOk;
}

int nvmlDeviceGetTemperature(device* d, unsigned sensor, unsigned* out) {
  if (sensor != 0 || d->celsius == 0) return kNotSupported;
  *out = d->celsius;
  return kOk;
}

int nvmlDeviceGetPowerUsage(device* d, unsigned* out) {
  if (d->milliwatts == 0) return kNotSupported;
  *out = d->milliwatts;
  return kOk;
}

#ifdef OLD_NVML
typedef struct {
  unsigned pid;
  unsigned long long used;
} told_process;
#define nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses
#define nvmlDeviceGetGraphicsRunningProcesses_v2 nvmlDeviceGetGraphicsRunningProcesses
#else
typedef process_info told_process;
#endif

static int tell_processes(const process_list* list, unsigned* count, told_process* out) {
  unsigned room = *count;
  *count = list->count;
  if (room < list->count) return kTooSmall;
  // The older structure is the beginning of the newer one.
  for (unsigned i = 0; i < list->count; ++i) memcpy(&out[i], &list->all[i], sizeof *out);
  return kOk;
}

int nvmlDeviceGetComputeRunningProcesses_v2(device* d, unsigned* count, told_process* out) {
  return tell_processes(&d->computing, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(device* d, unsigned* count, told_process* out) {
  return tell_processes(&d->drawing, count, out);
}

// Lies beside the facts, as what a driver keeps: "compute-mode.UUID".
static FILE* open_compute_mode(const device* d, const char* how) {
  char name[128];
  snprintf(name, sizeof name, "compute-mode.%s", d->uuid);
  return open_beside(name, how);
}

int nvmlDeviceGetComputeMode(device* d, unsigned* out) {
  FILE* file = open_compute_mode(d, "r");
  *out = 0;
  if (file == NULL) return d->is_slice ? kNotSupported : kOk;
  if (fscanf(file, "%u", out) != 1) *out = 0;
  fclose(file);
  return kOk;
}

int nvmlDeviceSetComputeMode(device* d, unsigned value) {
  FILE* file = geteuid() == 0 ? open_compute_mode(d, "w") : NULL;
  if (file == NULL) return kNoPermission;
  fprintf(file, "%u\n", value);
  fclose(file);
  return kOk;
}

int nvmlDeviceGetMigMode(device* d, unsigned* current, unsigned* pending) {
  *current = *pending = d->mig;
  return d->is_slice ? kInvalid : kOk;
}

int nvmlDeviceGetMaxMigDeviceCount(device* d, unsigned* out) {
  *out = d->is_slice ? 0 : 7;
  return kOk;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device* d, unsigned index, device** out) {
  if (index >= d->slice_count) return kNotFound;
  *out = d->slices[index];
  return kOk;
}

int nvmlDeviceGetGpuInstanceId(device* d, unsigned* out) {
  *out = d->gi;
  return d->is_slice ? kOk : kNotSupported;
}

int nvmlDeviceGetComputeInstanceId(device* d, unsigned* out) {
  *out = d->ci;
  return d->is_slice ? kOk : kNotSupported;
}

int nvmlDeviceGetAttributes_v2(device* d, attributes* out) {
  memset(out, 0, sizeof *out);
  out->memorySizeMB = d->memory >> 20;
  return d->is_slice ? kOk : kNotSupported;
}
