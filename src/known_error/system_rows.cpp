// SPDX-License-Identifier: Apache-2.0
// The environment of a program: shared memory, networks, MPI, ROCm, other engines.
#include "known_error/table.hpp"

namespace berth::known_error {
namespace {

using enum Level;

constexpr std::string_view kMoreShm = "berth run --shm-size 8g, or --ipc host";
constexpr std::string_view kSamePmi =
    "srun --mpi=list and an MPI in the image that was built for one of these; or mpirun in the "
    "container";

}  // namespace

std::vector<Row> rows_of_system() {
  return {
      // ---- shared memory, NCCL, MPI -------------------------------------------------------------
      {"shm.too-small",
       cause,
       {"nccl warn call to posix_fallocate failed", "error while creating shared memory segment",
        "failed to extend /dev/shm/nccl"},
       "/dev/shm of the container is too small for NCCL",
       kMoreShm},
      {"shm.too-small",
       cause,
       {"workers are out of shared memory", "caused by insufficient shared memory (shm)",
        "unable to write to file </torch_"},
       "/dev/shm of the container is too small for PyTorch's workers",
       kMoreShm},
      {"shm.too-small",
       sign,
       {"instead of /dev/shm because /dev/shm has only {n} bytes available"},
       "/dev/shm of the container is too small for Ray, which is slow without",
       kMoreShm},
      {"nccl.system",
       effect,
       {"unhandled system error", "ncclsystemerror"},
       "a call to the system failed in NCCL: too small a /dev/shm, a limit, or no network "
       "interface",
       "NCCL_DEBUG=INFO names the call; --shm-size 8g, --ulimit memlock=-1, --network host"},
      {"nccl.cuda",
       effect,
       {"ncclunhandledcudaerror", "nccl error{*}unhandled cuda error"},
       "a call to CUDA failed in NCCL",
       "NCCL_DEBUG=INFO names it; compare NCCL's CUDA and the driver's"},
      {"fabric.memlock",
       sign,
       {"rlimit_memlock is {n} bytes"},
       "InfiniBand needs locked memory, and the limit is {1} bytes",
       "berth run --ulimit memlock=-1"},
      {"fabric.device",
       sign,
       {"call to ibv_open_device failed", "net/ib : unable to open device {w}",
        "there was an error initializing an openfabrics device"},
       "the InfiniBand or RoCE adapter is seen but cannot be opened in the container, so the "
       "slower "
       "network is used",
       "berth run --device /dev/infiniband --ulimit memlock=-1; libraries of the machine's "
       "rdma-core "
       "release in the image"},
      {"mpi.pmi",
       cause,
       {"ompi was not built with slurm's pmi support", "pmi2_init failed to intialize"},
       "Open MPI in the image does not speak the process manager interface by which srun started "
       "it",
       kSamePmi},
      {"mpi.pmi",
       cause,
       {"opal error: unreachable in file {*}ext3x_client",
        "opal error: unreachable in file {*}pmix"},
       "Open MPI's PMIx does not reach the launcher's server: another version, or its socket is "
       "not in "
       "the container",
       kSamePmi},
      {"mpi.pmi",
       effect,
       {"pmix error: {w} in file"},
       "PMIx in the image and the launcher's cannot work together ({1})",
       kSamePmi},
      {"mpi.fabric",
       effect,
       {"ofi addrinfo() failed"},
       "libfabric in the image has no provider for this machine's network",
       "the machine's libfabric, or FI_PROVIDER=tcp; on one node I_MPI_FABRICS=shm"},
      {"mpi.root",
       effect,
       {"mpirun has detected an attempt to run as root",
        "mpiexec has detected an attempt to run as root"},
       "Open MPI does not start as root",
       "berth run --user, or OMPI_ALLOW_RUN_AS_ROOT=1"},
      {"mpi.init",
       effect,
       {"it looks like mpi_init failed for some reason", "it looks like opal_init failed",
        "it looks like orte_init failed"},
       "Open MPI could not start: its files or its launcher are of another version",
       kSamePmi},

      // ---- ROCm ---------------------------------------------------------------------------------
      {"rocm.no-code",
       effect,
       {"tensilelibrary.dat{*}for gpu arch : {w}"},
       "rocBLAS has no code for {1}",
       kRocmCode},
      {"rocm.node-closed",
       cause,
       {"unable to open /dev/kfd read-write: permission denied"},
       "the user may not open /dev/kfd",
       "berth run --group-add keep-groups; the groups render and video"},
      {"rocm.no-device",
       effect,
       {"unable to open /dev/kfd read-write: no such file"},
       "AMD's compute interface is not in the container",
       "berth run --gpus all; modprobe amdgpu"},
      {"rocm.no-device",
       effect,
       {"no hip gpus are available", "no rocm-capable device is detected", "hiperrornodevice"},
       "no AMD GPU is in the container, or the user may not open it",
       "berth run --gpus all --group-add keep-groups"},
      {"rocm.out-of-memory",
       effect,
       {"hip out of memory", "hiperroroutofmemory"},
       "the GPU's memory is full",
       "smaller batches, or more GPUs; rocm-smi shows what else uses it"},

      // ---- other engines ------------------------------------------------------------------------
      {"engine.no-toolkit",
       cause,
       {"could not select device driver {*} with capabilities: [[gpu"},
       "that engine has no GPU support: NVIDIA's toolkit is not installed or not configured",
       "nvidia-ctk runtime configure --runtime=docker; or berth run --gpus, which needs none"},
      {"engine.no-toolkit",
       cause,
       {"unknown or invalid runtime name: nvidia", "unknown runtime specified nvidia"},
       "that engine does not know the runtime 'nvidia'",
       "nvidia-ctk runtime configure --runtime=docker; or berth run --gpus, which needs none"},
      {"engine.cdi",
       cause,
       {"unresolvable cdi devices {w}"},
       "no CDI file describes {1}",
       "berth cdi list; berth cdi generate"},
  };
}

}  // namespace berth::known_error
