// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "doctor/finding.hpp"
#include "doctor/gather.hpp"

namespace berth::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Finding ask(std::string_view id, const Facts& facts) {
  for (const Check& check : all_checks()) {
    if (check.id == id) return check.judge(facts);
  }
  ADD_FAILURE() << "no check " << id;
  return {};
}

gpu::Node node_of(std::string path, uint32_t major, uint32_t minor) {
  return {.path = std::move(path), .host_path = {}, .major = major, .minor = minor};
}

NodeFacts good_node(std::string path, uint32_t major, uint32_t minor) {
  NodeFacts node;
  node.expected = node_of(std::move(path), major, minor);
  node.owner = "the driver";
  node.found = node.character = true;
  node.major = major;
  node.minor = minor;
  node.mode = 0666;
  node.group = "root";
  return node;
}

// A machine with one GPU on which nothing is wrong, and an ordinary user of it.
Facts healthy() {
  Facts facts;
  HostFacts& host = facts.host;
  host.kernel = "6.12.0";
  host.seccomp = true;
  host.user.uid = host.user.gid = 1000;
  host.user.name = "alice";
  host.user.subordinate_uids = host.user.subordinate_gids = 65536;
  host.user.map_tools = true;
  host.user_namespace.worked = true;
  host.procfs.worked = true;
  host.all_ids = true;
  host.overlay.worked = true;
  host.layer_images = sys::ErofsWay::fuse;
  host.systemd = true;
  host.program_directory = "/usr/libexec/berth";
  host.cgroups = {true, true, "/user.slice", {"cpu", "memory", "pids"}, true};
  sys::FileSystem disk;
  disk.type = 0xef53;
  disk.free_bytes = uint64_t{100} << 30;
  disk.total_inodes = disk.free_inodes = 1000000;
  host.root = {"/home/alice/.local/share/berth", "/home/alice", std::nullopt, disk};
  host.state = {"/run/user/1000/berth", "/run/user/1000", std::nullopt, disk};

  GpuFacts& gpu = facts.gpu;
  gpu.listed = true;
  gpu.majors = {{"nvidia", 195}, {"nvidia-uvm", 508}};
  gpu.inventory.driver = {"570.133.20", "570.133.20", "12.8", "nvml"};
  gpu.inventory.nvml = "ok";
  gpu::Gpu card;
  card.pci_address = "0000:1b:00.0";
  card.brand = "tesla";
  gpu.inventory.gpus = {card};
  for (const char* name : {"libcuda.so.570.133.20", "libnvidia-ml.so.570.133.20"}) {
    gpu::DriverFile file;
    file.name = name;
    file.host_path = std::string("/usr/lib64/") + name;
    gpu.inventory.files.push_back(file);
  }
  gpu.pci = {{"0000:1b:00.0", "10de", "nvidia", true}};
  gpu.nodes = {good_node("/dev/nvidiactl", 195, 255), good_node("/dev/nvidia0", 195, 0),
               good_node("/dev/nvidia-uvm", 508, 0)};
  gpu.libraries = disk;
  gpu.dev = sys::FileSystem{};
  gpu.persistence_daemon = true;
  return facts;
}

TEST(Doctor, finds_nothing_on_a_machine_where_nothing_is_wrong) {
  for (const Answer& answer : examine(healthy(), Scope::everything)) {
    EXPECT_TRUE(answer.finding.status == Status::ok ||
                answer.finding.status == Status::not_applicable)
        << answer.id << ": " << answer.finding.cause;
    EXPECT_THAT(answer.finding.remedy, IsEmpty()) << answer.id;
  }
}

TEST(Doctor, has_nothing_to_say_about_gpus_on_a_machine_without_one) {
  Facts facts = healthy();
  facts.gpu = GpuFacts{};
  for (const Answer& answer : examine(facts, Scope::gpu)) {
    EXPECT_EQ(answer.finding.status, Status::not_applicable)
        << answer.id << ": " << answer.finding.cause;
  }
}

TEST(Doctor, gives_every_check_an_id_of_its_own) {
  std::set<std::string_view> ids;
  for (const Check& check : all_checks()) EXPECT_TRUE(ids.insert(check.id).second) << check.id;
}

TEST(Doctor, asks_about_gpus_alone_when_told_so) {
  for (const Answer& answer : examine(healthy(), Scope::gpu)) {
    EXPECT_THAT(std::string(answer.id), StartsWith("gpu."));
  }
}

/// One thing that is wrong, and what has to be found.
struct Fault {
  const char* name;
  const char* id;
  Status status;
  const char* cause;   ///< a part of it
  const char* remedy;  ///< a part of it
  void (*make)(Facts&);
};

class Finds : public ::testing::TestWithParam<Fault> {};

TEST_P(Finds, the_fault_with_cause_and_remedy) {
  const Fault& fault = GetParam();
  Facts facts = healthy();
  fault.make(facts);
  Finding finding = ask(fault.id, facts);
  EXPECT_EQ(finding.status, fault.status) << finding.cause;
  EXPECT_THAT(finding.cause, HasSubstr(fault.cause));
  EXPECT_THAT(finding.remedy, HasSubstr(fault.remedy));
  EXPECT_EQ(finding.cause.find('\n'), std::string::npos);
}

constexpr Status kWarning = Status::warning;
constexpr Status kProblem = Status::problem;

const Fault kHostFaults[] = {
    {"programs", "host.programs", kProblem, "berth-monitor is missing", "install",
     [](Facts& f) { f.host.missing_programs = {"berth-monitor"}; }},
    {"libraries", "host.programs", kProblem, "cannot start on this system: berth-hub: libfmt",
     "built for this system",
     [](Facts& f) { f.host.unfit_program = "berth-hub: libfmt.so.9: not found"; }},
    {"parts", "host.programs", kWarning, "berth-hub, berth-scope are missing", "Building",
     [](Facts& f) {
       f.host.missing_parts = {"berth-hub", "berth-scope"};
     }},
    {"seccomp", "host.kernel", kProblem, "no seccomp", "CONFIG_SECCOMP_FILTER",
     [](Facts& f) { f.host.seccomp = false; }},
    {"namespaces_off", "host.user-namespace", kProblem, "make a user namespace: No space left",
     "sysctl user.max_user_namespaces=65536",
     [](Facts& f) {
       f.host.user_namespace = {false,
                                sys_error(ENOSPC, "make a user namespace")
                                    .with_hint("sysctl user.max_user_namespaces=65536"),
                                ""};
     }},
    {"covered_procfs", "host.procfs", kProblem, "Operation not permitted", "--pid host",
     [](Facts& f) {
       f.host.procfs = {false, sys_error(EPERM, "mount a procfs"), ""};
     }},
    {"cannot_run", "host.identity", kProblem, "cannot run containers", "host.user-namespace",
     [](Facts& f) { f.host.user_namespace.failure = sys_error(EPERM, "make a user namespace"); }},
    {"no_subuid", "host.subordinate-ids", kWarning, "none for 'alice' in /etc/subuid", "alice",
     [](Facts& f) { f.host.user.subordinate_uids = 0; }},
    {"no_subgid", "host.subordinate-ids", kWarning, "in /etc/subgid", "--add-subgids",
     [](Facts& f) { f.host.user.subordinate_gids = 0; }},
    {"few_ids", "host.subordinate-ids", kWarning, "only 1000", "usermod",
     [](Facts& f) { f.host.user.subordinate_uids = 1000; }},
    {"no_newuidmap", "host.subordinate-ids", kWarning, "newuidmap", "uidmap",
     [](Facts& f) { f.host.user.map_tools = false; }},
    {"ids_refused", "host.subordinate-ids", kWarning, "range refused", "/etc/subuid",
     [](Facts& f) {
       f.host.all_ids = false;
       f.host.user_namespace.note = "range refused";
     }},
    {"overlay", "host.overlay", kWarning, "a copy of its image", "fuse-overlayfs",
     [](Facts& f) {
       f.host.overlay = {false, sys_error(EINVAL, "mount overlay"), ""};
     }},
    {"fuse_overlay", "host.overlay", kWarning, "fuse-overlayfs is used instead", "--root DIR",
     [](Facts& f) {
       f.host.overlay = {false, sys_error(EINVAL, "mount overlay"), ""};
       f.host.fuse_overlay = true;
     }},
    {"no_layer_images", "host.layer-images", Status::not_applicable, "open '/dev/fuse'", "",
     [](Facts& f) {
       f.host.layer_images = std::nullopt;
       f.host.no_layer_images = sys_error(ENOENT, "open '/dev/fuse'");
     }},
    {"no_cgroups", "host.cgroups", kWarning, "none are mounted", "mount -t cgroup2",
     [](Facts& f) { f.host.cgroups = {}; }},
    {"cgroups_not_ours", "host.cgroups", kWarning, "may not create any", "enable-linger",
     [](Facts& f) { f.host.cgroups.writable = false; }},
    {"controllers", "host.cgroups", kWarning, "without cpu, pids",
     "Delegate=cpu cpuset io memory pids",
     [](Facts& f) { f.host.cgroups.controllers = {"memory"}; }},
    {"policy_bad", "host.policy", kProblem, "policy.json", "berth policy apply",
     [](Facts& f) { f.host.policy_error = make_error(Kind::corrupt, "policy.json: line 1"); }},
    {"policy_old", "host.policy", kWarning, "not applied", "berth policy apply",
     [](Facts& f) { f.host.policy_outdated = true; }},
    {"no_network", "host.network", kProblem, "containers cannot have 'bridge', the default: find",
     "apt install slirp4netns",
     [](Facts& f) {
       f.host.network = "bridge";
       f.host.no_network = make_error(Kind::unsupported, "find 'slirp4netns' or 'pasta' in PATH",
                                      "apt install slirp4netns");
     }},
    {"no_home", "storage.root", kProblem, "HOME is not set", "--root DIR",
     [](Facts& f) {
       f.host.no_home = make_error(Kind::usage, "no place: HOME is not set", "--root DIR");
     }},
    {"root_not_writable", "storage.root", kProblem, "Permission denied", "--root DIR",
     [](Facts& f) { f.host.root.unusable = sys_error(EACCES, "use '/var/lib/berth'"); }},
    {"root_read_only", "storage.root", kProblem, "read-only", "--root DIR",
     [](Facts& f) { f.host.root.file_system->read_only = true; }},
    {"state_not_writable", "storage.state", kProblem, "Permission denied", "--state DIR",
     [](Facts& f) { f.host.state.unusable = sys_error(EACCES, "use '/run/berth'"); }},
    {"disk_full", "storage.space", kWarning, "only 1GB", "berth rmi",
     [](Facts& f) { f.host.root.file_system->free_bytes = 1000000000; }},
    {"no_inodes", "storage.space", kWarning, "only 10 inodes", "berth rmi",
     [](Facts& f) { f.host.root.file_system->free_inodes = 10; }},
    {"store_noexec", "storage.mount-flags", kWarning, "noexec", "--gpu-driver",
     [](Facts& f) { f.host.root.file_system->no_exec = true; }},
};

const Fault kDriverFaults[] = {
    {"no_root", "gpu.present", kProblem, "no such directory", "--driver-root",
     [](Facts& f) { f.gpu.error = make_error(Kind::not_found, "no such directory"); }},
    {"no_driver", "gpu.present", kProblem, "1 GPU is on the PCI bus", "gpu.module",
     [](Facts& f) { f.gpu.inventory = {}; }},
    {"no_amd_driver", "gpu.present", kProblem, "1 GPU is on the PCI bus", "modprobe amdgpu",
     [](Facts& f) {
       f.gpu = GpuFacts{};
       f.gpu.pci = {{"0000:43:00.0", "1002", "", false}};
     }},
    {"no_kfd", "gpu.kfd", kProblem, "'/dev/kfd'", "modprobe amdgpu",
     [](Facts& f) { f.gpu.inventory.gpus[0].vendor = gpu::Vendor::amd; }},
    {"module", "gpu.module", kProblem, "not loaded", "modprobe nvidia",
     [](Facts& f) { f.gpu.inventory.driver.module_version.clear(); }},
    {"two_versions", "gpu.module", kWarning,
     "/sys/module/nvidia/version says 570.133.20, which counts here, and "
     "/proc/driver/nvidia/version says 535.54.03",
     "reboot", [](Facts& f) { f.gpu.listed_version = "535.54.03"; }},
    {"nouveau", "gpu.module", kProblem, "nouveau has the GPUs", "blacklist nouveau",
     [](Facts& f) {
       f.gpu.inventory.driver.module_version.clear();
       f.gpu.nouveau = true;
     }},
    {"vfio", "gpu.module", kProblem, "vfio-pci", "unbind",
     [](Facts& f) {
       f.gpu.inventory.driver.module_version.clear();
       f.gpu.pci[0].driver = "vfio-pci";
     }},
    {"mismatch", "gpu.version-mismatch", kProblem,
     "driver files are 580.1 but the kernel module is 570.133.20", "reboot",
     [](Facts& f) { f.gpu.inventory.driver.library_version = "580.1"; }},
    {"no_libcuda", "gpu.libraries", kProblem, "2 directories were searched", "--driver-root",
     [](Facts& f) {
       f.gpu.inventory.files.clear();
       f.gpu.searched = {"/usr/lib64", "/usr/lib"};
     }},
    {"only_32_bit", "gpu.libraries", kProblem, "only a 32-bit one", "install",
     [](Facts& f) {
       for (auto& file : f.gpu.inventory.files) file.elf32 = true;
     }},
    {"no_nvml_library", "gpu.libraries", kWarning, "libnvidia-ml.so", "libnvidia-ml1",
     [](Facts& f) { f.gpu.inventory.files.pop_back(); }},
    {"damaged", "gpu.damaged-files", kWarning, "'/usr/lib64/libcuda.so.1': no ELF", "install",
     [](Facts& f) {
       f.gpu.inventory.unusable = {{"/usr/lib64/libcuda.so.1", "no ELF file", {}}};
     }},
    {"noexec", "gpu.noexec", kProblem, "noexec", "remount,exec",
     [](Facts& f) { f.gpu.libraries->no_exec = true; }},
    {"nvml_missing", "gpu.nvml", kWarning, "NVML is missing", "libnvidia-ml.so.1",
     [](Facts& f) { f.gpu.inventory.nvml = "missing"; }},
    {"nvml_hangs", "gpu.nvml", kProblem, "no answer within 10000 ms", "nvidia-smi",
     [](Facts& f) { f.gpu.inventory.nvml = "no answer within 10000 ms"; }},
    {"sleeping", "gpu.persistence", kWarning, "took 3.2 s", "nvidia-persistenced",
     [](Facts& f) {
       f.gpu.persistence_daemon = false;
       f.gpu.probe_time = std::chrono::milliseconds(3200);
     }},
    {"slow_all_the_same", "gpu.persistence", kWarning, "although nvidia-persistenced runs",
     "nvidia-smi", [](Facts& f) { f.gpu.probe_time = std::chrono::milliseconds(3200); }},
    {"fallen_off", "gpu.lost", kProblem, "0000:1b:00.0", "Xid",
     [](Facts& f) { f.gpu.pci[0].listed = false; }},
    {"left_out", "gpu.left-out", kWarning, "2 GPUs are left out", "Excluded",
     [](Facts& f) { f.gpu.inventory.left_out = 2; }},
    {"fabric", "gpu.fabric-manager", kProblem, "error 802", "nvidia-fabricmanager",
     [](Facts& f) { f.gpu.nvswitch = true; }},
    {"mig_empty", "gpu.mig-slices", kProblem, "GPU 0 is in MIG mode and has no slice", "mig -i 0",
     [](Facts& f) { f.gpu.inventory.gpus[0].mig_mode = true; }},
    {"uvm", "gpu.uvm", kProblem, "nvidia-uvm is not loaded", "modprobe nvidia-uvm",
     [](Facts& f) { f.gpu.majors.erase("nvidia-uvm"); }},
};

const Fault kNodeFaults[] = {
    {"missing", "gpu.nodes-missing", kProblem, "'/dev/nvidia-uvm' is missing",
     "nvidia-modprobe -u -c 0", [](Facts& f) { f.gpu.nodes[2].found = false; }},
    {"missing_for_root", "gpu.nodes-missing", kWarning, "root's containers get their own",
     "nvidia-modprobe -c 0",
     [](Facts& f) {
       f.host.user.machine_root = true;
       f.gpu.nodes[1].found = false;
     }},
    {"stale", "gpu.nodes-stale", kProblem, "'/dev/nvidia-uvm' is 510:0, the driver's is 508:0",
     "rm /dev/nvidia-uvm; nvidia-modprobe", [](Facts& f) { f.gpu.nodes[2].major = 510; }},
    {"no_device", "gpu.nodes-stale", kProblem, "'/dev/nvidia0' is not a character device",
     "rm /dev/nvidia0", [](Facts& f) { f.gpu.nodes[1].character = false; }},
    {"group_only", "gpu.node-access", kProblem,
     "this user may not open '/dev/nvidia0' (mode 0660, group video)", "usermod -aG video alice",
     [](Facts& f) {
       NodeFacts& node = f.gpu.nodes[1];
       node.mode = 0660;
       node.gid = 44;
       node.group = "video";
       node.access_errno = EACCES;
     }},
    {"root_only", "gpu.node-access", kProblem, "mode 0600", "NVreg_DeviceFileMode=0666",
     [](Facts& f) {
       f.gpu.nodes[1].mode = 0600;
       f.gpu.nodes[1].access_errno = EACCES;
     }},
    {"group_is_lost", "gpu.keep-groups", kWarning, "by the group video", "keep-groups",
     [](Facts& f) {
       NodeFacts& node = f.gpu.nodes[1];
       node.mode = 0660;
       node.gid = 44;
       node.group = "video";
     }},
    {"cgroup", "gpu.device-cgroup", kProblem, "'/dev/nvidia0' is denied by a control group",
     "DeviceAllow", [](Facts& f) { f.gpu.nodes[1].access_errno = EPERM; }},
    {"job", "gpu.device-cgroup", kWarning, "Slurm job 42 does not own it", "--gres",
     [](Facts& f) {
       f.gpu.nodes[1].access_errno = EPERM;
       f.host.job = "Slurm job 42";
     }},
    {"nodev", "gpu.nodev", kProblem, "nodev", "remount,dev",
     [](Facts& f) { f.gpu.dev->no_dev = true; }},
    {"char_links", "gpu.char-links", kWarning, "'/dev/nvidiactl' and 2 more have no link",
     "ln -s /dev/nvidiactl /dev/char/195:255",
     [](Facts& f) {
       for (NodeFacts& node : f.gpu.nodes) node.char_link = false;
     }},
    {"capability_missing", "gpu.mig-nodes", kProblem, "'/dev/nvidia-caps/nvidia-cap66' is missing",
     "mknod -m 444 /dev/nvidia-caps/nvidia-cap66 c 237 66",
     [](Facts& f) {
       f.gpu.nodes.push_back(good_node("/dev/nvidia-caps/nvidia-cap66", 237, 66));
       f.gpu.nodes.back().expected.mode = 0444;
       f.gpu.nodes.back().found = false;
     }},
    {"capability_closed", "gpu.mig-nodes", kProblem,
     "this user may not read '/dev/nvidia-caps/nvidia-cap66'", "chmod 444",
     [](Facts& f) {
       f.gpu.nodes.push_back(good_node("/dev/nvidia-caps/nvidia-cap66", 237, 66));
       f.gpu.nodes.back().access_errno = EACCES;
     }},
};

CdiFile cdi_file() {
  CdiFile file;
  file.path = "/etc/cdi/nvidia.yaml";
  file.kind = "nvidia.com/gpu";
  file.driver_versions = {"570.133.20"};
  return file;
}

const Fault kSiteFaults[] = {
    {"cdi_bad", "gpu.cdi-files", kProblem, "nvidia.yaml: line 3", "berth cdi validate",
     [](Facts& f) {
       f.gpu.cdi = {cdi_file()};
       f.gpu.cdi[0].error = make_error(Kind::corrupt, "nvidia.yaml: line 3");
     }},
    {"cdi_driver", "gpu.cdi-driver", kProblem,
     "'/etc/cdi/nvidia.yaml' is of driver 550.54.14, this machine has 570.133.20",
     "berth cdi generate",
     [](Facts& f) {
       f.gpu.cdi = {cdi_file()};
       f.gpu.cdi[0].driver_versions = {"550.54.14"};
     }},
    {"cdi_nodes", "gpu.cdi-nodes", kProblem, "is 508:0, the file says 510:0", "berth cdi generate",
     [](Facts& f) {
       f.gpu.cdi = {cdi_file()};
       f.gpu.cdi[0].stale_nodes = {"'/dev/nvidia-uvm' is 508:0, the file says 510:0"};
     }},
    {"cdi_files", "gpu.cdi-missing-files", kProblem, "names '/usr/lib64/a' and 1 more",
     "berth cdi generate",
     [](Facts& f) {
       f.gpu.cdi = {cdi_file()};
       f.gpu.cdi[0].missing_files = {"/usr/lib64/a", "/usr/lib64/b"};
     }},
    {"toolkit_broken", "gpu.toolkit-config", kWarning, "config.toml:3: x", "fix that line",
     [](Facts& f) {
       f.gpu.toolkit_config = "/etc/config.toml";
       f.gpu.toolkit_error = make_error(Kind::corrupt, "/etc/config.toml:3: x");
     }},
    {"toolkit", "gpu.toolkit-config", kWarning, "no-cgroups = true and 1 more", "policy import",
     [](Facts& f) {
       f.gpu.toolkit_config = "/etc/nvidia-container-runtime/config.toml";
       f.gpu.toolkit_keys = {"nvidia-container-cli.no-cgroups = true", "disable-require = true"};
     }},
    {"hooks", "gpu.old-hooks", kWarning, "oci-nvidia-hook.json", "remove",
     [](Facts& f) { f.gpu.hooks = {"/etc/containers/oci/hooks.d/oci-nvidia-hook.json"}; }},
    {"selinux", "gpu.selinux", kWarning, "SELinux enforces", "setsebool",
     [](Facts& f) {
       f.host.selinux_enforcing = true;
       f.gpu.container_use_devices = false;
     }},
};

std::string name_of(const ::testing::TestParamInfo<Fault>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Host, Finds, ::testing::ValuesIn(kHostFaults), name_of);
INSTANTIATE_TEST_SUITE_P(Driver, Finds, ::testing::ValuesIn(kDriverFaults), name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, Finds, ::testing::ValuesIn(kNodeFaults), name_of);
INSTANTIATE_TEST_SUITE_P(Site, Finds, ::testing::ValuesIn(kSiteFaults), name_of);

TEST(Doctor, tells_that_index_and_minor_differ_without_blaming_it) {
  Facts facts = healthy();
  facts.gpu.inventory.gpus[0].minor = 2;
  Finding finding = ask("gpu.index-minor", facts);
  EXPECT_EQ(finding.status, Status::ok);
  EXPECT_THAT(finding.cause, StartsWith("GPU 0 is /dev/nvidia2"));
}

TEST(Doctor, tells_that_a_geforce_takes_no_newer_cuda_from_an_image) {
  Facts facts = healthy();
  facts.gpu.inventory.gpus[0].brand = "geforce";
  Finding finding = ask("gpu.forward-compat", facts);
  EXPECT_EQ(finding.status, Status::ok);
  EXPECT_THAT(finding.cause, StartsWith("GPU 0 (geforce): images cannot"));
}

TEST(Doctor, tells_whether_the_drivers_gl_is_here) {
  Facts facts = healthy();
  EXPECT_THAT(ask("gpu.graphics", facts).cause, HasSubstr("is not installed"));
  gpu::DriverFile file;
  file.name = "libGLX_nvidia.so.570.133.20";
  facts.gpu.inventory.files.push_back(file);
  EXPECT_EQ(ask("gpu.graphics", facts).cause, "the driver's GL is installed");
  file.elf32 = true;
  facts.gpu.inventory.files.push_back(file);
  EXPECT_EQ(ask("gpu.graphics", facts).cause, "the driver's GL is installed, also for 32-bit");
}

TEST(Doctor, takes_nodes_that_a_job_did_not_get_for_right) {
  Facts facts = healthy();
  facts.host.job = "Slurm job 42";
  facts.gpu.nodes[1].found = false;
  facts.gpu.inventory.left_out = 1;
  EXPECT_EQ(ask("gpu.nodes-missing", facts).status, Status::ok);
  EXPECT_EQ(ask("gpu.left-out", facts).status, Status::ok);
}

TEST(Doctor, does_not_ask_for_optional_nodes) {
  Facts facts = healthy();
  facts.gpu.nodes.push_back(good_node("/dev/nvidia-modeset", 195, 254));
  facts.gpu.nodes.back().found = false;
  facts.gpu.nodes.back().optional = true;
  EXPECT_EQ(ask("gpu.nodes-missing", facts).status, Status::ok);
}

TEST(Doctor, names_the_searched_directories) {
  Facts facts = healthy();
  facts.gpu.inventory.files.clear();
  facts.gpu.searched = {"/usr/lib64", "/usr/lib"};
  EXPECT_THAT(ask("gpu.libraries", facts).details, ElementsAre("/usr/lib64", "/usr/lib"));
}

TEST(ToolkitConfig, tells_keys_that_are_not_the_defaults) {
  auto keys = changed_toolkit_keys(
      "disable-require = false  # as ever\n"
      "#accept-nvidia-visible-devices-as-volume-mounts = true\n"
      "\n[nvidia-container-cli]\nload-kmods = true\n"
      "no-cgroups = true  # rootless\n"
      "[nvidia-container-runtime]\nruntimes = [\n  'docker-runc', # Docker's\n  'runc', 'crun']\n"
      "[nvidia-container-runtime.modes.cdi]\n"
      "annotation-prefixes = [\"cdi.k8s.io/\"]\n"
      "default-kind = \"amd.com/gpu\"\n",
      "config.toml");
  ASSERT_TRUE(keys.ok()) << to_line(keys.error());
  EXPECT_THAT(*keys,
              ElementsAre("nvidia-container-cli.no-cgroups = true",
                          "nvidia-container-runtime.modes.cdi.default-kind = \"amd.com/gpu\""));
}

TEST(ToolkitConfig, names_the_line_that_is_no_toml) {
  EXPECT_THAT(*changed_toolkit_keys("", "config.toml"), IsEmpty());
  auto keys = changed_toolkit_keys("a = 1\n[b\n", "config.toml");
  ASSERT_FALSE(keys.ok());
  EXPECT_THAT(keys.error().what, StartsWith("config.toml:2: "));
}

}  // namespace
}  // namespace berth::doctor
