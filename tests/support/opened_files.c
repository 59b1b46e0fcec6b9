/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a library of NVIDIA's driver and calls its first functions, as programs that use it do.
 *
 *     probe NAME       a row of kProbes; prints one line for each call
 *     probe --look     reads paths from stdin; for each prints "PATH\tKIND\tSIZE\tHASH\tTARGET" or
 * "PATH\t-"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* library;

static void* load(const char* name) {
  void* made = dlopen(name, RTLD_NOW);
  if (made == NULL)
    printf("%s: %s\n", name, dlerror());
  else
    printf("%s: loaded\n", name);
  return made;
}

static void* function(const char* name) {
  void* found = library == NULL ? NULL : dlsym(library, name);
  if (library != NULL && found == NULL) printf("%s: not there\n", name);
  return found;
}

/* Arguments are pointers to zeros: what a call says of them is compared, not what it means. */
static char zeros[4][8192];

static void call(const char* name) {
  int (*found)(void*, void*, void*, void*) = function(name);
  if (found == NULL) return;
  memset(zeros, 0, sizeof zeros);
  printf("%s: %d\n", name, found(zeros[0], zeros[1], zeros[2], zeros[3]));
}

static void cuda(void) {
  int (*init)(unsigned) = function("cuInit");
  if (init != NULL) printf("cuInit: %d\n", init(0));
  call("cuDeviceGetCount");
  call("cuDriverGetVersion");
}

static void nvml(void) {
  const char* (*text)(int) = function("nvmlErrorString");
  call("nvmlInit_v2");
  call("nvmlInit");
  call("nvmlDeviceGetCount_v2");
  if (text != NULL) printf("nvmlErrorString: %s\n", text(9));
}

static void encode(void) {
  call("NvEncodeAPIGetMaxSupportedVersion");
  call("NvEncodeAPICreateInstance");
}

static void cuvid(void) {
  call("cuvidGetDecoderCaps");
}

static void optix(void) {
  int (*query)(int, unsigned, int*, const void**, void*, size_t) =
      function("optixQueryFunctionTable");
  if (query == NULL) return;
  for (int abi = 18; abi < 120; ++abi) {
    for (size_t size = 8 * 16; size <= 8 * 64; size += 8) {
      if (query(abi, 0, NULL, NULL, zeros[0], size) == 0)
        printf("optixQueryFunctionTable: %d %zu\n", abi, size);
    }
  }
}

static void opencl_icd(void) {
  void* (*address)(const char*) = function("clGetExtensionFunctionAddress");
  if (address == NULL) return;
  int (*platforms)(unsigned, void*, unsigned*) = address("clIcdGetPlatformIDsKHR");
  unsigned count = 0;
  if (platforms != NULL) printf("clIcdGetPlatformIDsKHR: %d\n", platforms(0, NULL, &count));
}

static void opencl(void) {
  int (*platforms)(unsigned, void*, unsigned*) = function("clGetPlatformIDs");
  unsigned count = 0;
  if (platforms != NULL) printf("clGetPlatformIDs: %d\n", platforms(0, NULL, &count));
}

static struct {
  int type;
  const void* next;
  int flags;
  const void* application;
  unsigned layers;
  const char* const* layer_names;
  unsigned extensions;
  const char* const* extension_names;
} instance_info = {1, NULL, 0, NULL, 0, NULL, 0, NULL};

static void create_instance(int (*create)(const void*, const void*, void**)) {
  void* instance = NULL;
  if (create != NULL) printf("vkCreateInstance: %d\n", create(&instance_info, NULL, &instance));
}

static void vulkan_icd(void) {
  int (*negotiate)(unsigned*) = function("vk_icdNegotiateLoaderICDInterfaceVersion");
  void* (*address)(void*, const char*) = function("vk_icdGetInstanceProcAddr");
  unsigned version = 5;
  if (negotiate != NULL)
    printf("vk_icdNegotiateLoaderICDInterfaceVersion: %d\n", negotiate(&version));
  if (address != NULL)
    create_instance((int (*)(const void*, const void*, void**))address(NULL, "vkCreateInstance"));
}

static void vulkan(void) {
  create_instance(function("vkCreateInstance"));
}

static void egl(void) {
  void* (*address)(const char*) = function("eglGetProcAddress");
  void* (*display)(void*) = function("eglGetDisplay");
  int (*initialize)(void*, int*, int*) = function("eglInitialize");
  if (address == NULL || display == NULL || initialize == NULL) return;
  int (*devices)(int, void*, int*) = address("eglQueryDevicesEXT");
  int count = 0, major = 0, minor = 0;
  if (devices != NULL) printf("eglQueryDevicesEXT: %d\n", devices(0, NULL, &count));
  void* made = display(NULL);
  printf("eglGetDisplay: %s\n", made == NULL ? "none" : "one");
  printf("eglInitialize: %d\n", initialize(made, &major, &minor));
}

static void fbc(void) {
  call("NvFBCCreateInstance");
}
static void cfg(void) {
  call("nvCfgGetPciDevices");
}
static void optical_flow(void) {
  call("NvOFAPICreateInstanceCuda");
}
static void nothing(void) {}

/* As libvdpau asks for it: in its directory first. */
static void vdpau(void) {
  if (load("/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.1") == NULL)
    load("libvdpau_nvidia.so.1");
}

static const struct {
  const char *name, *library;
  void (*use)(void);
} kProbes[] = {
    {"libcuda", "libcuda.so.1", cuda},
    {"libcuda.so", "libcuda.so", nothing},
    {"NVML", "libnvidia-ml.so.1", nvml},
    {"libnvidia-ml.so", "libnvidia-ml.so", nothing},
    {"NVENC", "libnvidia-encode.so.1", encode},
    {"NVCUVID", "libnvcuvid.so.1", cuvid},
    {"OptiX", "libnvoptix.so.1", optix},
    {"OpenCL library", "libnvidia-opencl.so.1", opencl_icd},
    {"OpenCL", "libOpenCL.so.1", opencl},
    {"Vulkan library", "libGLX_nvidia.so.0", vulkan_icd},
    {"Vulkan", "libvulkan.so.1", vulkan},
    {"EGL library", "libEGL_nvidia.so.0", nothing},
    {"EGL", "libEGL.so.1", egl},
    {"GLX", "libGLX_nvidia.so.0", nothing},
    {"GLX indirect", "libGLX_indirect.so.0", nothing},
    {"GLES 2", "libGLESv2_nvidia.so.2", nothing},
    {"GLES 1", "libGLESv1_CM_nvidia.so.1", nothing},
    {"FBC", "libnvidia-fbc.so.1", fbc},
    {"VDPAU", NULL, vdpau},
    {"NGX", "libnvidia-ngx.so.1", nothing},
    {"PTX JIT", "libnvidia-ptxjitcompiler.so.1", nothing},
    {"NVVM", "libnvidia-nvvm.so.4", nothing},
    {"debugger", "libcudadebugger.so.1", nothing},
    {"CFG", "libnvidia-cfg.so.1", cfg},
    {"optical flow", "libnvidia-opticalflow.so.1", optical_flow},
    {"allocator", "libnvidia-allocator.so.1", nothing},
    {"GBM", "/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so", nothing},
    {"libGL", "libGL.so.1", nothing},
};

/* Without stat(), whose symbol differs between versions of glibc. */
static void look_at(const char* path) {
  static uint64_t block[1 << 13];
  static char target[PATH_MAX];
  if (realpath(path, target) == NULL) {
    printf("%s\t-\n", path);
    return;
  }
  int file = strncmp(target, "/dev/", 5) == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  uint64_t hash = 14695981039346656037u, size = 0;
  ssize_t got = 0;
  while (file >= 0 && (got = read(file, block, sizeof block)) > 0) {
    memset((char*)block + got, 0, (8 - got % 8) % 8);
    for (ssize_t at = 0; at < (got + 7) / 8; ++at)
      hash = (hash ^ block[at]) * 1099511628211u, hash ^= hash >> 29;
    size += got;
  }
  const char* kind = file < 0 ? "node" : got < 0 && errno == EISDIR ? "directory" : "file";
  printf("%s\t%s\t%llu\t%016llx\t%s\n", path, kind, (unsigned long long)size,
         (unsigned long long)hash, target);
  if (file >= 0) close(file);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc != 2) return 2;
  if (strcmp(argv[1], "--look") == 0) {
    static char line[PATH_MAX];
    while (fgets(line, sizeof line, stdin) != NULL) {
      line[strcspn(line, "\n")] = '\0';
      look_at(line);
    }
    return 0;
  }
  for (size_t at = 0; at < sizeof kProbes / sizeof *kProbes; ++at) {
    if (strcmp(kProbes[at].name, argv[1]) != 0) continue;
    library = kProbes[at].library == NULL ? NULL : load(kProbes[at].library);
    kProbes[at].use();
    return 0;
  }
  return 2;
}
