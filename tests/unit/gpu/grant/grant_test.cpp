// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/grant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/grant/user_mounts.hpp"

namespace berth::gpu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

DriverFile library(std::string base, std::string soname, std::vector<std::string> capabilities,
                   bool elf32 = false) {
  DriverFile file;
  file.name = base + ".so.570.133.20";
  file.host_path = (elf32 ? "/lib32/" : "/lib64/") + file.name;
  file.soname = soname.empty() ? file.name : soname;
  file.loader_flags = elf32 ? 0x3 : 0x303;
  file.elf32 = elf32;
  file.capabilities = std::move(capabilities);
  return file;
}

DriverFile program(const std::string& name, const std::string& capability) {
  DriverFile file;
  file.kind = FileKind::binary;
  file.name = name;
  file.host_path = "/host/bin/" + name;
  file.container_path = "/usr/bin/" + name;
  file.capabilities = {capability};
  return file;
}

Node node(const std::string& path, uint32_t major, uint32_t minor) {
  Node out;
  out.path = path;
  out.major = major;
  out.minor = minor;
  return out;
}

// Eight GPUs whose minors run against their order.
Inventory machine(uint32_t gpus = 8) {
  Inventory inventory;
  inventory.driver = {"570.133.20", "570.133.20", "12.8", "nvml"};
  for (uint32_t i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.minor = 7 - i;
    gpu.uuid = "GPU-" + std::string(i < 2 ? "aa" : "b") + std::to_string(i) + "-0000";
    gpu.pci_address = "0000:" + std::to_string(10 + i) + ":00.0";
    gpu.brand = "tesla";
    gpu.compute_capability = "9.0";
    gpu.node = node("/dev/nvidia" + std::to_string(gpu.minor), 195, gpu.minor);
    gpu.drm_nodes = {node("/dev/dri/card" + std::to_string(i), 226, i)};
    inventory.gpus.push_back(gpu);
  }
  inventory.control_nodes = {node("/dev/nvidiactl", 195, 255), node("/dev/nvidia-uvm", 507, 0),
                             node("/dev/nvidia-uvm-tools", 507, 1),
                             node("/dev/nvidia-modeset", 195, 254)};
  inventory.files = {library("libcuda", "libcuda.so.1", {"compute", "video"}),
                     library("libnvidia-ml", "libnvidia-ml.so.1", {"utility"}),
                     library("libnvidia-gpucomp", "", {"compute", "graphics"}),
                     library("libGLX_nvidia", "libGLX_nvidia.so.0", {"graphics", "display"}),
                     library("libcuda", "libcuda.so.1", {"compute", "video"}, true),
                     program("nvidia-smi", "utility"),
                     program("nvidia-cuda-mps-server", "compute")};
  inventory.proc_texts = {{"nvidia/params",
                           "ResmanDebugLevel: 1\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n",
                           {},
                           {}}};
  return inventory;
}

Inventory mig_machine() {
  Inventory inventory = machine(2);
  inventory.gpus[1].mig_mode = true;
  for (uint32_t i = 0; i < 2; ++i) {
    MigDevice slice;
    slice.index = i;
    slice.gpu_instance = 7 + i;
    slice.uuid = "MIG-c" + std::to_string(i);
    slice.nodes = {
        node("/dev/nvidia-caps/nvidia-cap" + std::to_string(66 + 9 * i), 244, 66 + 9 * i),
        node("/dev/nvidia-caps/nvidia-cap" + std::to_string(67 + 9 * i), 244, 67 + 9 * i)};
    inventory.gpus[1].mig.push_back(slice);
  }
  return inventory;
}

Result<Grant> ask(const std::string& text, const Inventory& inventory,
                  const std::vector<std::string>& image_env = {}) {
  Sources sources;
  sources.gpus = text;
  sources.image = image_env;
  auto choice = choose(sources, {});
  if (!choice.ok()) return choice.error();
  return make_grant(choice->request, inventory);
}

std::string line(const std::string& text, const Inventory& inventory,
                 const std::vector<std::string>& image_env = {}) {
  auto grant = ask(text, inventory, image_env);
  return grant.ok() ? "granted" : to_line(grant.error());
}

std::vector<std::string> node_paths(const Grant& grant) {
  std::vector<std::string> out;
  for (const Node& n : grant.nodes) out.push_back(n.path);
  return out;
}

std::vector<std::string> file_paths(const Grant& grant) {
  std::vector<std::string> out;
  for (const GrantedFile& file : grant.files) out.push_back(file.container_path);
  return out;
}

TEST(Grant, all_gives_every_gpu_and_what_compute_and_utility_need) {
  auto grant = ask("all", machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(grant->gpus, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(grant->nodes.size(), 11U);
  EXPECT_THAT(file_paths(*grant),
              ElementsAre("/usr/local/nvidia/lib64/libcuda.so.570.133.20",
                          "/usr/local/nvidia/lib64/libnvidia-ml.so.570.133.20",
                          "/usr/local/nvidia/lib64/libnvidia-gpucomp.so.570.133.20",
                          "/usr/bin/nvidia-smi", "/usr/bin/nvidia-cuda-mps-server"));
  EXPECT_THAT(grant->env, Contains("NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
}

TEST(Grant, an_index_is_not_a_minor) {
  auto grant = ask("device=0,2", machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(node_paths(*grant), ElementsAre("/dev/nvidia7", "/dev/nvidia5", "/dev/nvidiactl",
                                              "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"));
  EXPECT_THAT(grant->env, Contains("NVIDIA_VISIBLE_DEVICES=GPU-aa0-0000,GPU-b2-0000"));
}

TEST(Grant, a_count_takes_the_first) {
  EXPECT_THAT(ask("2", machine())->gpus, ElementsAre(0, 1));
}

TEST(Grant, none_gives_nothing_even_without_a_driver) {
  auto grant = ask("none", Inventory{});
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(grant->nodes, IsEmpty());
  EXPECT_THAT(grant->env, IsEmpty());
}

TEST(Grant, a_prefix_of_an_id_is_enough_when_only_one_gpu_has_it) {
  EXPECT_THAT(ask("device=GPU-b5", machine())->gpus, ElementsAre(5));
  EXPECT_EQ(line("device=GPU-aa", machine()),
            "--gpus device=GPU-aa: 2 GPUs have an id that starts so; try: give more of the id; "
            "berth gpu list");
  EXPECT_EQ(line("device=GPU-ff", machine()),
            "--gpus device=GPU-ff: no such GPU, this machine has 8 GPUs; try: berth gpu list");
}

TEST(Grant, explains_the_old_name_of_a_slice_that_is_not_there) {
  EXPECT_EQ(line("device=MIG-GPU-aa1-0000/1/3", mig_machine()),
            "--gpus device=MIG-GPU-aa1-0000/1/3: no such slice; this is how drivers before 470 "
            "named one, by GPU and instances; try: by number, --gpus device=0:0; berth gpu list");
}

TEST(Grant, says_how_many_gpus_there_are) {
  EXPECT_EQ(line("9", machine()), "--gpus 9: this machine has 8 GPUs; try: berth gpu list");
  EXPECT_EQ(line("2", machine(1)), "--gpus 2: this machine has 1 GPU; try: berth gpu list");
  EXPECT_EQ(line("device=8", machine()),
            "--gpus device=8: no such GPU, this machine has 8 GPUs; try: berth gpu list");
  EXPECT_EQ(line("device=x", machine()),
            "--gpus device=x: no such GPU, this machine has 8 GPUs; try: berth gpu list");
}

TEST(Grant, says_that_there_is_no_driver) {
  EXPECT_EQ(line("all", Inventory{}),
            "no NVIDIA driver is loaded on this machine; try: berth doctor gpu");
  Inventory unloaded;
  unloaded.driver.library_version = "570.133.20";
  EXPECT_EQ(line("all", unloaded),
            "no NVIDIA driver is loaded on this machine; try: modprobe nvidia");
  Inventory empty = machine(0);
  EXPECT_EQ(line("all", empty),
            "the NVIDIA driver finds no GPU on this machine; try: berth doctor gpu");
}

TEST(Grant, refuses_driver_files_of_another_version_than_the_module) {
  Inventory inventory = machine();
  inventory.driver.library_version = "535.54.03";
  EXPECT_EQ(line("all", inventory),
            "driver files are 535.54.03 but the kernel module is 570.133.20; try: reboot or reload "
            "the module");
  inventory.driver.library_version.clear();
  EXPECT_EQ(line("all", inventory),
            "the kernel module is 570.133.20 but no driver files were found below '/'; try: "
            "--driver-root DIR");
}

TEST(Grant, a_slice_gets_its_own_capability_nodes_only) {
  auto grant = ask("device=1:1", mig_machine());
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(node_paths(*grant), ElementsAre("/dev/nvidia6", "/dev/nvidia-caps/nvidia-cap75",
                                              "/dev/nvidia-caps/nvidia-cap76", "/dev/nvidiactl",
                                              "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"));
  EXPECT_THAT(grant->env, Contains("NVIDIA_VISIBLE_DEVICES=MIG-c1"));
  EXPECT_EQ(ask("device=MIG-c0", mig_machine())->nodes[1].minor, 66U);
  EXPECT_EQ(ask("device=MIG-GPU-aa1-0000/8/0", mig_machine())->nodes[1].minor, 75U);
}

TEST(Grant, a_gpu_in_mig_mode_is_granted_by_slices) {
  EXPECT_EQ(
      line("device=1", mig_machine()),
      "--gpus device=1: the GPU is in MIG mode, its 2 slices are granted one by one; try: --gpus "
      "device=1:0");
  EXPECT_EQ(line("device=1:5", mig_machine()),
            "--gpus device=1:5: GPU 1 has 2 MIG slices; try: berth gpu list");
  auto grant = ask("all", mig_machine());
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(grant->env, Contains("NVIDIA_VISIBLE_DEVICES=GPU-aa0-0000,MIG-c0,MIG-c1"));
}

TEST(Grant, capabilities_of_the_user_win_over_those_of_the_image) {
  auto grant = ask("all,capabilities=utility", machine(), {"NVIDIA_DRIVER_CAPABILITIES=all"});
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(file_paths(*grant), ElementsAre("/usr/local/nvidia/lib64/libnvidia-ml.so.570.133.20",
                                              "/usr/bin/nvidia-smi"));
  EXPECT_THAT(node_paths(*grant), Not(Contains("/dev/nvidia-uvm")));
}

TEST(Grant, the_image_may_name_capabilities_and_nothing_else) {
  std::vector<std::string> env = {"NVIDIA_VISIBLE_DEVICES=all",
                                  "NVIDIA_DRIVER_CAPABILITIES=graphics,unheard"};
  auto grant = ask("1", machine(), env);
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(grant->gpus, ElementsAre(0));
  EXPECT_THAT(file_paths(*grant),
              ElementsAre("/usr/local/nvidia/lib64/libnvidia-gpucomp.so.570.133.20",
                          "/usr/local/nvidia/lib64/libGLX_nvidia.so.570.133.20"));
  EXPECT_THAT(node_paths(*grant), ElementsAre("/dev/nvidia7", "/dev/dri/card0", "/dev/nvidiactl",
                                              "/dev/nvidia-modeset"));
  EXPECT_THAT(ask("none", machine(), env)->nodes, IsEmpty());
}

TEST(Grant, the_32_bit_files_come_only_when_asked_for) {
  auto grant = ask("all,capabilities=compute,compat32", machine());
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(file_paths(*grant), Contains("/usr/local/nvidia/lib/libcuda.so.570.133.20"));
}

TEST(Grant, links_are_made_by_soname) {
  auto grant = ask("all", machine());
  std::vector<std::string> links;
  for (const GrantedLink& link : grant->links) links.push_back(link.path + " -> " + link.target);
  EXPECT_THAT(links, Contains("/usr/local/nvidia/lib64/libcuda.so.1 -> libcuda.so.570.133.20"));
  EXPECT_THAT(links, Contains("/usr/local/nvidia/lib64/libcuda.so -> libcuda.so.1"));
  EXPECT_THAT(links, Contains("/usr/local/nvidia/bin/nvidia-smi -> /usr/bin/nvidia-smi"));
  EXPECT_EQ(grant->loader_entries[0].path, "/usr/local/nvidia/lib64/libcuda.so.1");
}

TEST(Grant, a_library_is_in_the_loaders_cache_by_each_of_its_names) {
  auto grant = ask("all,capabilities=all", machine());
  auto has = [&](const std::string& name, int32_t flags) {
    return std::ranges::any_of(grant->loader_entries, [&](const scan::LoaderEntry& entry) {
      return entry.soname == name && entry.flags == flags;
    });
  };
  const std::string directory = "/usr/local/nvidia/lib64/";
  auto check = [&](const std::string& path) {
    bool ours = path.starts_with(directory) && path.find('/', directory.size()) == path.npos;
    EXPECT_TRUE(!ours || has(path.substr(directory.size()), 0x303)) << path;
  };
  for (const GrantedLink& link : grant->links) check(link.path);
  for (const GrantedFile& file : grant->files) check(file.container_path);
  EXPECT_TRUE(has("libGLX_indirect.so.0", 0x303));
  EXPECT_TRUE(has("libcuda.so.570.133.20", 0x3));
}

TEST(Grant, params_forbid_making_nodes_of_other_gpus) {
  auto grant = ask("1", machine());
  ASSERT_TRUE(grant.ok());
  ASSERT_EQ(grant->proc.size(), 1U);
  EXPECT_EQ(grant->proc[0].text,
            "ResmanDebugLevel: 1\nModifyDeviceFiles: 0\nDeviceFileMode: 438\n");
  EXPECT_TRUE(grant->frozen_params);
  Inventory other = machine();
  other.synthetic = true;  // whose host has no such file for a hook to cover
  EXPECT_FALSE(ask("1", other)->frozen_params);
  other = machine();
  other.proc_texts[0].text = "ModifyDeviceFiles: 0\n";
  EXPECT_FALSE(ask("1", other)->frozen_params);
}

Inventory machine_with_proc() {
  Inventory inventory = machine(2);
  inventory.proc_texts = {{"nvidia/version", "570\n", {}, {}},
                          {"nvidia/params", "A: 1\nModifyDeviceFiles: 1\n", {}, {}},
                          {"nvidia/gpus/a/information", "first\n", 0, {}},
                          {"nvidia/gpus/b/information", "second\n", 1, {}},
                          {"nvidia/capabilities/mig/config", "1\n", {}, {}},
                          {"nvidia-caps/mig-minors", "gpu0/gi0 3\n", 0, {}},
                          {"nvidia-caps/mig-minors", "gpu1/gi0 9\n", 1, {}}};
  return inventory;
}

TEST(Grant, only_what_was_granted_is_seen_in_procfs) {
  auto grant = ask("device=1", machine_with_proc());
  ASSERT_TRUE(grant.ok());
  std::vector<std::string> seen;
  for (const ProcFile& file : grant->proc) seen.push_back(file.path + "=" + file.text);
  EXPECT_THAT(
      seen,
      ElementsAre("nvidia/version=570\n", "nvidia/params=A: 1\nModifyDeviceFiles: 0\n",
                  "nvidia/gpus/b/information=second\n", "nvidia-caps/mig-minors=gpu1/gi0 9\n"));
}

Result<Grant> with_image(const std::string& wish, const GrantOptions& options) {
  auto request = parse_request(wish);
  return make_grant(*request, machine(1), options);
}

std::string why(const Grant& grant, const std::string& object) {
  for (const Reason& one : grant.reasons) {
    if (one.object == object) return (one.given ? "given: " : "not given: ") + one.why;
  }
  return "no reason";
}

TEST(Grant, an_image_with_its_own_driver_gets_nodes_alone_if_the_version_fits) {
  scan::DriverFiles image;
  GrantOptions options{policy::DriverMode::image, &image, true, {}};
  EXPECT_EQ(to_line(with_image("all", options).error()),
            "the image has no libcuda.so.1 of its own that its loader finds; try: --gpu-driver "
            "bind");
  image.libraries = {{"/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.535.1", "535.1",
                      "a default directory", false}};
  EXPECT_EQ(to_line(with_image("all", options).error()),
            "the image's '/usr/lib64/libcuda.so.1' (by a default directory) is 535.1 but the "
            "kernel module is 570.133.20; try: --gpu-driver bind, or an image with that driver");
  image.libraries[0].version = "570.133.20";
  auto grant = with_image("all", options);
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(grant->files, IsEmpty());
  EXPECT_THAT(grant->loader_entries, IsEmpty());
  EXPECT_THAT(grant->links, IsEmpty());
  EXPECT_THAT(node_paths(*grant), Contains("/dev/nvidia7"));
  EXPECT_EQ(why(*grant, "/usr/lib64/libcuda.so.1"),
            "given: the image's own, found by a default directory: it will be loaded");
}

TEST(Grant, a_libcuda_that_would_win_is_covered_or_refused) {
  scan::DriverFiles image;
  image.libraries = {
      {"/opt/libcuda.so.1", "/opt/libcuda.so.535.1", "535.1", "LD_LIBRARY_PATH", true},
      {"/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1", "", "a default directory", false}};
  auto grant = with_image("all", {policy::DriverMode::bind, &image, true, {}});
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(file_paths(*grant), Contains("/opt/libcuda.so.535.1"));
  EXPECT_THAT(file_paths(*grant), Not(Contains("/usr/lib64/libcuda.so.1")));
  auto refused =
      with_image("all", {policy::DriverMode::bind, &image, true, {{"/opt", "/srv/opt"}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what,
            "'/opt/libcuda.so.1' (by LD_LIBRARY_PATH) would be loaded in place of the driver's "
            "libcuda, and lies in a volume");
}

TEST(Grant, programs_of_a_volume_are_mounted_where_the_image_may_have_its_own) {
  GrantOptions options;
  options.mode = policy::DriverMode::volume;
  auto grant = with_image("all", options);
  ASSERT_TRUE(grant.ok());
  EXPECT_THAT(file_paths(*grant), Contains("/usr/local/nvidia/bin/nvidia-smi"));
  EXPECT_THAT(grant->volume_programs,
              Contains(AllOf(Field(&GrantedLink::path, "/usr/bin/nvidia-smi"),
                             Field(&GrantedLink::target, "/usr/local/nvidia/bin/nvidia-smi"))));
}

TEST(Grant, a_mount_in_the_drivers_place_moves_it_and_a_second_one_is_an_error) {
  for (const char* where : {"/usr", "/usr/local/nvidia", "/usr/local/nvidia/lib64"}) {
    GrantOptions options;
    options.user_mounts = {{where, "/srv/site"}};
    auto grant = with_image("all", options);
    ASSERT_TRUE(grant.ok()) << to_line(grant.error());
    EXPECT_EQ(grant->directory, "/.berth/nvidia") << where;
    EXPECT_EQ(grant->loader_entries[0].path, "/.berth/nvidia/lib64/libcuda.so.1");
    options.user_mounts.push_back({"/.berth", "/srv/other"});
    EXPECT_EQ(with_image("all", options).error().kind, Kind::unsupported);
  }
  GrantOptions beside;
  beside.user_mounts = {{"/usr/local/nvidia-tools", "/srv/site"}, {"/usr/localized", "/srv/site"}};
  EXPECT_EQ(with_image("all", beside)->directory, kDriverDirectory);
}

TEST(Grant, a_link_of_the_image_into_a_mount_moves_the_driver) {
  GrantOptions options;
  options.real_path = [](const std::string& path) {
    constexpr std::string_view kLink = "/usr/local";
    return path.starts_with(kLink) ? "/data" + path.substr(kLink.size()) : path;
  };
  options.user_mounts = {{"/data", "/srv/site"}};
  EXPECT_EQ(with_image("all", options)->directory, "/.berth/nvidia");
  options.user_mounts = {{"/opt", "/srv/site"}};
  EXPECT_EQ(with_image("all", options)->directory, kDriverDirectory);
}

TEST(Grant, what_a_file_mounts_in_a_mount_of_the_users_has_to_be_there) {
  const std::string place = "/usr/lib/libcuda.so.1", source = "/host/libcuda.so.1";
  auto same = [](const std::string& path) { return path; };
  std::map<std::string, HostFile> host = {{source, HostFile::other}};
  auto look = [&](const std::string& root, const std::string& below) {
    std::string path = root + below;
    auto found = host.find(path);
    return found == host.end() ? HostFile::absent : found->second;
  };
  auto fit = [&](const std::string& destination) {
    oci::Mount mount;
    mount.destination = destination;
    mount.source = source;
    std::vector<oci::Mount> given = {mount};
    auto left_out = fit_places(given, {{"/usr", "/srv/usr"}}, same, look);
    if (!left_out.ok()) return left_out.error().what;
    return std::to_string(given.size()) + " given, left out: " + join(*left_out, " ");
  };
  EXPECT_EQ(fit(place),
            "its CDI file mounts '/usr/lib/libcuda.so.1', which would have to be made in the mount "
            "at '/usr'");
  for (const char* beside : {"/usr", "/usr2/lib", "/opt/x"}) {
    EXPECT_EQ(fit(beside), "1 given, left out: ") << beside;
  }
  host[source] = HostFile::socket;
  EXPECT_EQ(fit(place), "0 given, left out: " + place);
  host["/srv/usr/lib/libcuda.so.1"] = HostFile::other;
  EXPECT_EQ(fit(place), "1 given, left out: ");
}

TEST(UserMounts, what_is_mounted_last_lies_above) {
  oci::Spec spec;
  auto add = [&](const std::string& destination, const std::string& type,
                 const std::string& source) {
    oci::Mount mount;
    mount.destination = destination;
    mount.type = type;
    mount.source = source;
    spec.mounts.push_back(std::move(mount));
  };
  int asked = 0;
  RealPath real_path = [&](const std::string& path) {
    ++asked;
    return path;
  };
  add("/proc", "proc", "proc");
  add("/run/deep", "tmpfs", "tmpfs");
  EXPECT_TRUE(user_mounts(spec, real_path).empty());
  EXPECT_EQ(asked, 0);  // nothing of the host's is mounted: the image is not looked at
  add("/run", "bind", "/srv/run");
  add("/run/own/", "tmpfs", "tmpfs");
  add("/run/own/host", "bind", "/srv/host");
  auto mounts = user_mounts(spec, real_path);
  auto over = [&](const std::string& path) {
    const UserMount* mount = mount_over(mounts, path);
    return mount == nullptr ? std::string("none") : mount->source;
  };
  EXPECT_EQ(over("/run/x"), "/srv/run");
  EXPECT_EQ(over("/run/deep/x"), "/srv/run");
  EXPECT_EQ(over("/run/own"), "none");
  EXPECT_EQ(over("/run/own/x"), "none");
  EXPECT_EQ(over("/run/own/host/x"), "/srv/host");
  EXPECT_EQ(over("/proc/x"), "none");
  spec.mounts.clear();
  add("/home", "bind", "/srv/home");
  add("/usr/local", "tmpfs", "tmpfs");
  add("/usr/local/nvidia/x", "tmpfs", "tmpfs");
  EXPECT_EQ(*choose_directory(user_mounts(spec, real_path), real_path), "/usr/local/nvidia");
}

TEST(UserMounts, a_device_that_is_not_in_what_lies_over_its_place_is_an_error) {
  const oci::Device gpu{"c", "/dev//nvidia0", 195, 0, {}, {}, {}};
  std::set<std::string> there;
  auto look = [&](const std::string& root, const std::string& below, const oci::Device&) {
    return there.contains(root + below);
  };
  auto check = [&](std::vector<UserMount> mounts) {
    auto checked = check_devices(std::span(&gpu, 1), mounts, look);
    return checked.ok() ? "" : checked.error().what;
  };
  EXPECT_EQ(check({}), "");
  EXPECT_EQ(check({{"/dev/nvidia", "/srv"}, {"/devices", "/srv"}, {"/dev/nvidia0/x", "/srv"}}), "");
  const std::string error =
      "device '/dev/nvidia0' is not in '/srv/dev', which is mounted at '/dev'";
  EXPECT_EQ(check({{"/dev", "/srv/dev"}}), error);
  there = {"/srv/dev/nvidia0"};
  EXPECT_EQ(check({{"/dev", "/srv/dev"}}), "");
  EXPECT_EQ(check({{"/dev/nvidia0", "/srv/dev/nvidia0"}}), "");
}

TEST(Grant, compat_libraries_come_first_in_the_loaders_cache_where_they_fit) {
  scan::DriverFiles image;
  image.compat = scan::CompatPackage{
      "/usr/local/cuda/compat", "575.57.08", true, "12.9", {550, 570}, {"libcuda.so.1"}};
  GrantOptions options{policy::DriverMode::bind, &image, true, {}};
  EXPECT_EQ(with_image("all", options)->loader_entries[0].path,
            "/usr/local/cuda/compat/libcuda.so.1");
  options.forward_compatibility = false;
  EXPECT_EQ(with_image("all", options)->loader_entries[0].path,
            "/usr/local/nvidia/lib64/libcuda.so.1");
}

TEST(Grant, a_name_in_our_directory_leads_to_the_compat_library_that_is_used) {
  scan::DriverFiles image;
  image.compat = scan::CompatPackage{
      "/usr/local/cuda/compat", "575.57.08", true, "12.9", {550, 570}, {"libcuda.so.1"}};
  auto grant = with_image("all", {policy::DriverMode::bind, &image, true, {}});
  ASSERT_TRUE(grant.ok());
  for (const GrantedLink& link : grant->links) {
    if (link.path != "/usr/local/nvidia/lib64/libcuda.so.1") continue;
    EXPECT_EQ(link.target, "/usr/local/cuda/compat/libcuda.so.1");
  }
}

TEST(Grant,
     what_compat_libraries_may_replace_has_no_name_outside_of_the_cache_until_it_is_decided) {
  GrantOptions options;
  options.compat_later = true;
  auto grant = with_image("all", options);
  ASSERT_TRUE(grant.ok() && grant->compat);
  EXPECT_EQ(grant->compat->host_driver_version, "570.133.20");
  EXPECT_EQ(grant->compat->container_root, "/usr/local/cuda/compat");
  EXPECT_EQ(grant->loader_entries[0].soname, "libcuda.so.1");
  EXPECT_EQ(grant->loader_entries[0].path, "/usr/local/nvidia/lib64/libcuda.so.570.133.20");
  for (const GrantedLink& link : grant->links)
    EXPECT_THAT(link.path, Not(::testing::HasSubstr("libcuda.so")));
  options.forward_compatibility = false;
  EXPECT_FALSE(with_image("all", options)->compat);
}

TEST(Grant, refuses_what_the_image_can_not_run_on) {
  std::vector<std::string> env = {"NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=geforce,driver>=470"};
  EXPECT_EQ(line("1", machine(), env),
            "the image requires 'cuda>=13.0 brand=geforce,driver>=470' (NVIDIA_REQUIRE_CUDA), GPU "
            "0 has driver "
            "570.133.20 with CUDA 12.8, brand tesla, arch 9.0; try: another image, or -e "
            "NVIDIA_DISABLE_REQUIRE=1");
  env.push_back("NVIDIA_DISABLE_REQUIRE=true");
  EXPECT_EQ(line("1", machine(), env), "granted");
  EXPECT_EQ(line("1", machine(), {"NVIDIA_REQUIRE_CUDA=cuda>=12.4"}), "granted");
  EXPECT_EQ(line("1", machine(), {"NVIDIA_REQUIRE_JETPACK=csv-mounts=all"}), "granted");
  EXPECT_EQ(line("1", machine(), {"NVIDIA_REQUIRE_NEW=planet=mars"}), "granted");
}

TEST(Grant, an_unknown_fact_is_no_refusal) {
  Inventory inventory = machine();
  for (Gpu& gpu : inventory.gpus) gpu.compute_capability.reset();
  auto grant = ask("1", inventory, {"NVIDIA_REQUIRE_ARCH=arch>=7.0"});
  ASSERT_TRUE(grant.ok()) << to_line(grant.error());
  EXPECT_THAT(grant->reasons,
              Contains(AllOf(Field(&Reason::object, "NVIDIA_REQUIRE_ARCH"),
                             Field(&Reason::why,
                                   "may fail on GPU 0: NVML does not report what it requires"))));
}

}  // namespace
}  // namespace berth::gpu
