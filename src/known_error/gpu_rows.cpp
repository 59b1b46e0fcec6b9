// SPDX-License-Identifier: Apache-2.0
// GPUs: the driver, CUDA and its libraries.
#include "known_error/table.hpp"

namespace berth::known_error {
namespace {

constexpr std::string_view kOwnDriver =
    "berth run --gpu-driver bind, which brings this machine's driver; an image without a libcuda "
    "of its own";
constexpr std::string_view kNoDriverHere =
    "berth run --gpus all; if that was given, berth doctor gpu";
constexpr std::string_view kOtherCode =
    "a build of the program that has code for this GPU (berth gpu list: its compute capability)";
constexpr std::string_view kNodesHere =
    "berth doctor gpu; an ordinary user: --group-add keep-groups; --gpus device= for the right GPU";
constexpr std::string_view kOlderCuda =
    "a newer driver on this machine, an image of an older CUDA, or one that brings cuda-compat";

}  // namespace

std::vector<Row> rows_of_gpu() {
  return {
      // ---- NVIDIA's driver ----------------------------------------------------------------------
      cause("driver.version-mismatch", {"kernel version {v} does not match dso version {v}"},
            "libcuda in the container is of driver {2}, the loaded kernel module is {1}",
            kOwnDriver),
      cause("driver.version-mismatch", {"api mismatch: the nvidia kernel module has version {v}"},
            "a library of another driver is used with the loaded kernel module, which is {1}",
            kOwnDriver),
      cause("driver.version-mismatch",
            {"api mismatch: the client has the version {v}",
             "this nvidia driver component has version {v}",
             "{w}, but the nvidia kernel module's version does not match"},
            "a library of driver {1} is used with a kernel module of another version", kOwnDriver),
      cause("driver.version-mismatch", {"driver/library version mismatch"},
            "the driver's library and the loaded kernel module are of different versions: the "
            "driver was upgraded, or the image brings its own library",
            "berth doctor gpu; after an upgrade load the modules again or reboot"),
      cause(
          "driver.version-mismatch",
          {"mismatch in versions between nvidia-smi and nvml", "mismatch in expected nvml version"},
          "nvidia-smi and the NVML that it loads are of two drivers: one of them is the image's "
          "own, or only a part of the driver was upgraded",
          "berth doctor gpu, which names such files; berth run --gpu-driver bind"),
      cause("driver.system-mismatch",
            {"system has unsupported display driver / cuda driver combination",
             "cudaerrorsystemdrivermismatch", "cuda_error_system_driver_mismatch"},
            "the libcuda that the program loads does not match the loaded kernel module (CUDA "
            "error 803)",
            kOwnDriver, 803),
      cause("driver.compat-not-supported",
            {"forward compatibility was attempted on non supported hw",
             "cudaerrorcompatnotsupportedondevice", "cuda_error_compat_not_supported_on_device"},
            "a libcuda newer than the kernel module works only on data-centre GPUs, and this GPU "
            "is not one (CUDA error 804)",
            "berth run --gpu-driver bind; an image of an older CUDA; after an upgrade of the "
            "driver a reboot",
            804),
      cause("driver.requirement", {"unsatisfied condition: {w} >= {v}"},
            "the image asks for {1}>={2}, and this machine's driver or GPU does not meet this",
            "a newer driver, or an image of an older CUDA"),
      cause("driver.requirement", {"unsatisfied condition: {w}"},
            "the image asks for {1}, and this machine's driver or GPU does not meet this",
            "a newer driver, or an image of an older CUDA"),
      cause("driver.requirement", {"unsupported cuda version: driver {v} < image {v}"},
            "the image asks for CUDA {2}, and the driver offers {1}",
            "a newer driver, or an image of an older CUDA"),
      cause("driver.too-old", {"nvidia driver on your system is too old (found version {n})"},
            "the program is built for a newer CUDA than {1c}, the newest that this driver offers",
            kOlderCuda),
      cause("driver.too-old",
            {"cuda driver version is insufficient for cuda runtime version",
             "cudaerrorinsufficientdriver"},
            "the program's CUDA is newer than this driver, or no driver is in the container (CUDA "
            "error 35)",
            "berth run --gpus all if no GPU was requested; else a newer driver, an image of an "
            "older CUDA, or one that brings cuda-compat",
            35),
      cause("driver.too-old",
            {"api call is not supported in the installed cuda driver",
             "cudaerrorcallrequiresnewerdriver"},
            "the program calls a function that this driver does not have yet (CUDA error 36)",
            kOlderCuda, 36),
      cause("driver.not-ready",
            {"cudaerrorsystemnotready", "cuda_error_system_not_ready",
             "error 802: system not yet initialized", "cuda{*}system not yet initialized"},
            "the NVSwitch fabric of this machine is not up (CUDA error 802)",
            "systemctl start nvidia-fabricmanager; nvidia-smi -q shows the state of the fabric",
            802),
      cause("driver.node-lost", {"failed to initialize nvml: unknown error"},
            "the container may no longer use its GPU nodes: systemd has reloaded its units and "
            "denies devices that are not declared to it",
            "start the container again; for the remedy see gpu.char-links in berth doctor gpu"),
      cause("driver.node-lost", {"gpu access blocked by the operating system"},
            "the kernel denies the GPU's nodes, as device rules of a cgroup do: the nodes were not "
            "given to this container, or systemd has reloaded its units since",
            "start the container again with --gpus; berth doctor gpu"),
      cause("driver.node-closed", {"failed to initialize nvml: insufficient permissions"},
            "the user may not open the GPU's nodes", "berth doctor gpu; --group-add keep-groups"),
      cause("driver.node-closed",
            {"no devices were found. please make sure /dev/nvidia* files are readable"},
            "the user may not open the GPU's nodes", kNodesHere),
      cause("driver.node-closed", {"nvidia: could not open the device file {w} ({t})"},
            "the driver's library cannot open {1} ({2})", kNodesHere),
      cause(
          "driver.gpu-lost",
          {"^unable to determine the device handle for gpu{*}: gpu is lost",
           "gpu is lost. reboot the system to recover this gpu"},
          "the GPU no longer answers the driver: its power, its slot or the GPU itself has failed",
          "dmesg | grep -e NVRM -e Xid on the machine; a reboot"),
      cause("driver.gpu-reset",
            {"^unable to determine the device handle for gpu{*}: gpu requires reset",
             "failed to initialize nvml: gpu requires reset"},
            "the GPU has had an error after which it must be reset",
            "nvidia-smi --gpu-reset as root, when no container uses the GPU; a reboot"),
      cause(
          "driver.glibc",
          {"version `glibc_{v}' not found (required by /usr/local/nvidia/{t})",
           "version `glibc_{v}' not found (required by {*}libcuda.so{t})",
           "version `glibc_{v}' not found (required by {*}libnvidia-{t})"},
          "this machine's driver needs glibc {1}, and the image's is older",
          "a newer image; berth run --gpu-driver image where the image brings a driver of its own"),
      cause("driver.timed-out",
            {"nvidia-container-cli: initialization error: driver error: timed out"},
            "the driver took too long to start: no persistence daemon keeps it awake",
            "systemctl enable --now nvidia-persistenced"),
      effect("driver.missing", {"found no nvidia driver on your system"},
             "no NVIDIA driver is in the container", kNoDriverHere),
      effect("driver.missing",
             {"nvidia-smi has failed because it couldn't communicate with the nvidia driver",
              "failed to initialize nvml: driver not loaded", "nvml error: driver not loaded",
              "nvidia: failed to load the nvidia kernel module"},
             "the NVIDIA kernel module is not loaded, or its nodes are not in the container",
             "modprobe nvidia; berth doctor gpu"),
      effect("driver.no-device", {"^no devices were found$", "^nvidia: no nvidia devices found$"},
             "the driver is loaded and finds no GPU here: none was given to the container, or the "
             "driver could not start it",
             "berth gpu list on the machine; berth run --gpus all; dmesg | grep NVRM"),
      effect(
          "driver.persistence", {"nvidia-persistenced failed to initialize"},
          "nvidia-persistenced belongs to the machine: in a container it may not set up the GPUs",
          "systemctl enable --now nvidia-persistenced on the machine; containers get its socket"),
      effect("driver.missing",
             {"libcuda.so.1: cannot open shared object file",
              "libcuda.so: cannot open shared object file",
              "error loading shared library libcuda.so.1:"},
             "the program needs the NVIDIA driver's libcuda.so.1, and none is in the container",
             kNoDriverHere),
      effect(
          "driver.missing",
          {"libnvidia-ml.so.1: cannot open shared object file",
           "libnvidia-ml.so: cannot open shared object file",
           "couldn't find libnvidia-ml.so library", "nvml shared library not found",
           "error loading shared library libnvidia-ml.so.1:"},
          "the program needs the NVIDIA driver's libnvidia-ml.so.1, and none is in the container",
          "berth run --gpus all; if driver capabilities are given, 'utility' must be among them"),
      sign("driver.missing", {"kernel driver does not appear to be running on this host"},
           "no NVIDIA driver is loaded, or none is in the container: the GPU stays unused",
           kNoDriverHere),
      sign("driver.missing",
           {"could not load dynamic library 'libcuda.so.1'",
            "could not find cuda drivers on your machine"},
           "no NVIDIA driver is in the container: the GPU stays unused", kNoDriverHere),
      cause("driver.stub",
            {"cuda driver is a stub library", "cuda_error_stub_library", "cudaerrorstublibrary"},
            "the libcuda that the program loads is the toolkit's stub, which is only for linking "
            "(CUDA error 34)",
            "take …/stubs out of LD_LIBRARY_PATH; berth run --gpus all", 34),

      // ---- CUDA ---------------------------------------------------------------------------------
      sign("cuda.no-kernel-image",
           {"{t} with cuda capability {w} is not compatible with the current pytorch installation"},
           "this PyTorch has no code for this GPU ({2})", kOtherCode),
      effect("cuda.no-kernel-image",
             {"no kernel image is available for execution on the device",
              "cudaerrornokernelimagefordevice", "cuda_error_no_binary_for_gpu",
              "cublas_status_arch_mismatch", "cudnn_status_arch_mismatch"},
             "the program has no code for this GPU: no SASS for it, and no PTX that the driver can "
             "compile (CUDA error 209)",
             kOtherCode, 209, 48),
      effect("cuda.assert",
             {"device-side assert triggered", "cudaerrorassert", "cuda_error_assert"},
             "an assertion of the program's own failed on the GPU, mostly an index out of range; "
             "neither image nor machine are at fault (CUDA error 710)",
             "CUDA_LAUNCH_BLOCKING=1 shows the call; lines above this one may name the assertion",
             710, 59),
      sign("cuda.capability-too-low",
           {"with cuda compute capability {v}. the minimum required cuda capability is {v}"},
           "TensorFlow leaves the GPU unused: its compute capability is {1}, this build needs at "
           "least {2}",
           kOtherCode),
      effect("cuda.unsupported-ptx",
             {"the provided ptx was compiled with an unsupported toolchain",
              "cudaerrorunsupportedptxversion", "cuda_error_unsupported_ptx_version"},
             "the program's PTX is of a newer CUDA than this driver can compile (CUDA error 222)",
             "a newer driver, an image of an older CUDA, or a build with SASS for this GPU", 222),
      effect("cuda.invalid-ptx",
             {"a ptx jit compilation failed", "cudaerrorinvalidptx", "cuda_error_invalid_ptx"},
             "the driver could not compile the program's PTX (CUDA error 218)", kOlderCuda, 218),
      effect("cuda.invalid-image",
             {"device kernel image is invalid", "cudaerrorinvalidkernelimage",
              "cuda_error_invalid_image"},
             "the driver cannot read the program's GPU code: the code is of a newer CUDA, or "
             "damaged (CUDA error 200)",
             kOlderCuda, 200, 47),
      effect("cuda.toolkit-too-old",
             {"value '{w}' is not defined for option 'gpu-name'",
              "unsupported gpu architecture '{w}'"},
             "the CUDA compiler in the image does not know {1}: the compiler is older than the "
             "GPU, or no longer supports it",
             "an image whose CUDA toolkit knows this GPU"),
      effect("cuda.toolkit-too-old", {"nvrtc: error: invalid value for --gpu-architecture"},
             "the CUDA run-time compiler in the image does not know this GPU: the compiler is "
             "older than the GPU",
             "an image whose CUDA toolkit knows this GPU"),
      effect("cuda.out-of-memory",
             {"cuda out of memory", "cuda error: out of memory", "cuda_error_out_of_memory",
              "cudaerrormemoryallocation", "cuda error {n}: out of memory"},
             "the GPU's memory is full",
             "smaller batches, or more GPUs; nvidia-smi shows what else uses it", 2),
      effect("cuda.devices-unavailable",
             {"all cuda-capable devices are busy or unavailable",
              "cuda-capable device(s) is/are busy or unavailable", "cudaerrordevicesunavailable",
              "cuda_error_device_unavailable"},
             "another process uses the GPU exclusively, or the GPU is in MIG mode without a slice "
             "(CUDA error 46)",
             "nvidia-smi (its compute mode and processes); berth doctor gpu", 46),
      effect("cuda.mps",
             {"mps client failed to connect to the mps control daemon",
              "cuda_error_mps_connection_failed", "cudaerrormpsconnectionfailed"},
             "the program cannot reach NVIDIA's MPS control daemon (CUDA error 805)",
             "start the daemon, or take CUDA_MPS_PIPE_DIRECTORY out of the environment", 805),
      effect(
          "cuda.mps",
          {"cannot find mps control daemon process", "cannot access cuda_mps_pipe_directory={t}",
           "cannot authenticate or connect to mps control daemon process"},
          "no MPS control daemon of this user answers in the directory that "
          "CUDA_MPS_PIPE_DIRECTORY names",
          "berth run --gpu-cores or --gpu-memory, which starts one; nvidia-cuda-mps-control -d on "
          "the machine, whose /tmp/nvidia-mps containers get"),
      effect("cuda.mps-user",
             {"user did not send valid credentials",
              "unable to accept {w} connection from other user"},
             "the MPS daemon belongs to another user: it serves only the processes of its own, and "
             "the container's user ids must be those of the machine",
             "berth run --gpu-cores, which starts a daemon of this user; --userns keep-id"),
      effect("cuda.invalid-device",
             {"invalid device ordinal", "cuda_error_invalid_device", "cudaerrorinvaliddevice"},
             "the program asks for a GPU by a number that the container does not have (CUDA error "
             "101)",
             "more GPUs with --gpus, or numbers from 0 on in CUDA_VISIBLE_DEVICES", 101, 10),
      effect("rocm.no-code",
             {"hiperrornobinaryforgpu", "hip error: invalid device function",
              "hiperrorinvaliddevicefunction"},
             "the program has no code for this AMD GPU", kRocmCode),
      effect("cuda.invalid-function",
             {"cuda error: invalid device function", "cudaerrorinvaliddevicefunction",
              "cuda runtime error ({n}) : invalid device function"},
             "the program has no code for this GPU, or two parts of it are of different CUDA "
             "releases (CUDA error 98)",
             kOtherCode, 98, 8),
      effect("cuda.no-device",
             {"no cuda-capable device is detected", "cuda_error_no_device", "cudaerrornodevice",
              "no cuda gpus are available"},
             "no GPU is in the container, or CUDA_VISIBLE_DEVICES names none (CUDA error 100)",
             kNoDriverHere, 100, 38),
      effect("cuda.unknown",
             {"cuda unknown error", "cuda error: unknown error", "cuda_error_unknown",
              "cudaerrorunknown"},
             "the driver could not start CUDA and does not say why (CUDA error 999): often "
             "nvidia-uvm is not loaded, or its node is not in the container",
             "berth doctor gpu; modprobe nvidia-uvm", 999, 30),
      sign("cuda.jit",
           {"not built with cuda kernel binaries compatible with compute capability {v}"},
           "TensorFlow has no code for compute capability {1}: the driver compiles it at the first "
           "start, which takes minutes",
           kOtherCode),
      sign("cuda.jit", {"kernels will be jit-compiled from ptx"},
           "the driver compiles the program's code at the first start, which takes minutes",
           kOtherCode),

      // ---- libraries of CUDA --------------------------------------------------------------------
      effect("library.older-than-built-for",
             {"loaded runtime cudnn library: {v} but source was compiled with: {v}",
              "loaded runtime cudnn library: {v} ({*}) but source was compiled with {v}"},
             "the image's cuDNN is {1}, and the program was built for {2}",
             "cuDNN {2} or a newer one of its major version in the image; look at LD_LIBRARY_PATH"),
      effect("library.older-than-built-for",
             {"found {w} version {n}, but jax was built against version {n}, which is newer"},
             "the image's {1} is {2}, and JAX was built for {3}",
             "a newer {1} in the image, or a jaxlib that was built for the image's {1}"),
      effect("library.older-than-built-for", {"outdated {w} installation found"},
             "the image's {1} is older than the one JAX was built for", "a newer {1} in the image"),
      effect("library.mixed-cuda",
             {"undefined symbol: {w}, version libnvjitlink.so", "undefined symbol: __nvjitlink{w}",
              "undefined symbol: _nvjitlink{w}"},
             "libraries of two CUDA releases are mixed: libnvJitLink is older than the library "
             "that needs it",
             "take the CUDA toolkit's directory out of LD_LIBRARY_PATH, or use one CUDA release "
             "for both libraries"),
      effect(
          "library.onnxruntime",
          {"failed to load library {*}libonnxruntime_providers_{*} with error: {w}: cannot open"},
          "onnxruntime's GPU part needs {1}, and the image does not have it where its loader looks",
          "an image with the CUDA and cuDNN that this onnxruntime was built for"),
      effect("library.not-started",
             {"cublas_status_not_initialized", "cudnn_status_not_initialized",
              "cusolver_status_not_initialized"},
             "a library of CUDA could not start: the GPU's memory is full, or the "
             "library does not match the driver",
             "nvidia-smi (memory); smaller batches; an image of an older CUDA"),
      effect("library.mkl", {"mkl fatal error: cannot load {w}"},
             "Intel's MKL does not find {1}, its part for this processor",
             "reinstall MKL in the image; look at LD_LIBRARY_PATH"),
      effect("library.mkl", {"mkl fatal error: this system does not meet the minimum requirements"},
             "Intel's MKL does not run on this processor", kLowerLevel),
  };
}

}  // namespace berth::known_error
