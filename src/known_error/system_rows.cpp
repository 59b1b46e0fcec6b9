// SPDX-License-Identifier: Apache-2.0
// The environment of a program: shared memory, networks, MPI, ROCm, other engines.
#include "known_error/table.hpp"

namespace berth::known_error {
namespace {

constexpr std::string_view kMoreShm = "berth run --shm-size 8g, or --ipc host";
constexpr std::string_view kSamePmi =
    "an MPI in the image that was built for a type that srun --mpi=list prints; or mpirun in the "
    "container";

}  // namespace

std::vector<Row> rows_of_system() {
  return {
      // ---- shared memory, NCCL, MPI -------------------------------------------------------------
      cause("shm.too-small",
            {"nccl warn call to posix_fallocate failed",
             "error while creating shared memory segment", "failed to extend /dev/shm/nccl"},
            "/dev/shm of the container is too small for NCCL", kMoreShm),
      cause("shm.too-small",
            {"workers are out of shared memory", "caused by insufficient shared memory (shm)",
             "unable to write to file </torch_"},
            "/dev/shm of the container is too small for PyTorch's workers", kMoreShm),
      sign("shm.too-small", {"instead of /dev/shm because /dev/shm has only {n} bytes available"},
           "/dev/shm of the container is too small for Ray, which is slow without it", kMoreShm),
      effect("nccl.system", {"unhandled system error", "ncclsystemerror"},
             "a system call of NCCL failed: /dev/shm or a limit is too small, or there is no "
             "network interface",
             "NCCL_DEBUG=INFO names the call; --shm-size 8g, --ulimit memlock=-1, --network host"),
      effect("nccl.cuda", {"ncclunhandledcudaerror", "nccl error{*}unhandled cuda error"},
             "a CUDA call of NCCL failed",
             "NCCL_DEBUG=INFO names the call; compare the CUDA versions of NCCL and of the driver"),
      sign("fabric.memlock", {"rlimit_memlock is {n} bytes"},
           "InfiniBand needs locked memory, and the limit is {1} bytes",
           "berth run --ulimit memlock=-1"),
      sign("fabric.device",
           {"call to ibv_open_device failed", "net/ib : unable to open device {w}",
            "there was an error initializing an openfabrics device"},
           "the InfiniBand or RoCE adapter is seen but cannot be opened in the container, so the "
           "slower network is used",
           "berth run --device /dev/infiniband --ulimit memlock=-1; libraries of the machine's "
           "rdma-core release in the image"),
      cause("mpi.pmi",
            {"ompi was not built with slurm's pmi support", "pmi2_init failed to intialize"},
            "Open MPI in the image does not speak the process manager interface by which srun "
            "started it",
            kSamePmi),
      cause("mpi.pmi",
            {"opal error: unreachable in file {*}ext3x_client",
             "opal error: unreachable in file {*}pmix"},
            "the image's Open MPI cannot reach the launcher's PMIx server: their versions differ, "
            "or the server's socket is not in the container",
            kSamePmi),
      effect("mpi.pmi", {"pmix error: {w} in file"},
             "the image's PMIx and the launcher's PMIx cannot work together ({1})", kSamePmi),
      effect("mpi.fabric", {"ofi addrinfo() failed"},
             "libfabric in the image has no provider for this machine's network",
             "the machine's libfabric, or FI_PROVIDER=tcp; on one node I_MPI_FABRICS=shm"),
      effect("mpi.root",
             {"mpirun has detected an attempt to run as root",
              "mpiexec has detected an attempt to run as root"},
             "Open MPI does not start as root", "berth run --user, or OMPI_ALLOW_RUN_AS_ROOT=1"),
      effect("mpi.init",
             {"it looks like mpi_init failed for some reason", "it looks like opal_init failed",
              "it looks like orte_init failed"},
             "Open MPI could not start: its files or its launcher are of another version",
             kSamePmi),

      // ---- ROCm ---------------------------------------------------------------------------------
      effect("rocm.no-code", {"tensilelibrary.dat{*}for gpu arch : {w}"},
             "rocBLAS has no code for {1}", kRocmCode),
      cause("rocm.node-closed", {"unable to open /dev/kfd read-write: permission denied"},
            "the user may not open /dev/kfd",
            "berth run --group-add keep-groups; the user needs the group render or video"),
      effect("rocm.no-device", {"unable to open /dev/kfd read-write: no such file"},
             "/dev/kfd, AMD's compute interface, is not in the container",
             "berth run --gpus all; modprobe amdgpu"),
      effect(
          "rocm.no-device",
          {"no hip gpus are available", "no rocm-capable device is detected", "hiperrornodevice"},
          "no AMD GPU is in the container, or the user may not open it",
          "berth run --gpus all --group-add keep-groups"),
      effect("rocm.out-of-memory", {"hip out of memory", "hiperroroutofmemory"},
             "the GPU's memory is full",
             "smaller batches, or more GPUs; rocm-smi shows what else uses it"),

      // ---- other engines ------------------------------------------------------------------------
      cause("engine.no-toolkit", {"could not select device driver {*} with capabilities: [[gpu"},
            "the engine, such as docker, has no GPU support: NVIDIA's toolkit is not installed or "
            "not configured",
            "nvidia-ctk runtime configure --runtime=docker; or berth run --gpus, which needs no "
            "toolkit"),
      cause("engine.no-toolkit",
            {"unknown or invalid runtime name: nvidia", "unknown runtime specified nvidia"},
            "the engine, such as docker, does not know the runtime 'nvidia'",
            "nvidia-ctk runtime configure --runtime=docker; or berth run --gpus, which needs no "
            "toolkit"),
      cause("engine.cdi", {"unresolvable cdi devices {w}"}, "no CDI file describes {1}",
            "berth cdi list; berth cdi generate"),
  };
}

}  // namespace berth::known_error
