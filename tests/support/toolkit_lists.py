# SPDX-License-Identifier: Apache-2.0
"""Which driver files NVIDIA's container toolkit and Berth give to containers: two lists of the toolkit, as facts from
its sources, and Berth's, read from ours.

The two of the toolkit: libnvidia-container's by name and capability (src/nvc_info.c of 00b4b47e, src/options.h of
5529c95f), which docker's `--gpus` used until 1.18, and the newer one without capabilities, for CDI
(nvidia-container-toolkit d34b3046: pkg/nvcdi/driver-nvml.go, internal/discover/graphics.go, ipc.go)."""

import pathlib
import re

_PROBE = pathlib.Path(__file__).resolve().parents[2] / "src/gpu/probe"
OURS = _PROBE / "driver_capabilities.cpp"
MODULES = _PROBE / "files.cpp"

_UTILITY = "libnvidia-ml libnvidia-cfg libnvidia-nscq nvidia-smi nvidia-debugdump nvidia-persistenced nv-fabricmanager"
_COMPUTE = ("libcuda libcudadebugger libnvidia-opencl libnvidia-gpucomp libnvidia-ptxjitcompiler "
            "libnvidia-fatbinaryloader libnvidia-allocator libnvidia-compiler libnvidia-pkcs11 "
            "libnvidia-pkcs11-openssl3 libnvidia-nvvm libnvidia-tileiras")
_COMPUTE_PROGRAMS = "nvidia-cuda-mps-control nvidia-cuda-mps-server"
_VIDEO = "libvdpau_nvidia libnvidia-encode libnvidia-opticalflow libnvcuvid"
_GRAPHICS = ("libnvidia-eglcore libnvidia-glcore libnvidia-tls libnvidia-glsi libnvidia-fbc libnvidia-ifr "
             "libnvidia-rtcore libnvoptix libGLX_nvidia libEGL_nvidia libGLESv2_nvidia libGLESv1_CM_nvidia "
             "libnvidia-glvkspirv libnvidia-cbl")
_WITHOUT_GLVND = "libGL libEGL libGLESv1_CM libGLESv2"

# Name → the capabilities with which a container gets it.
BY_CAPABILITY = {}
for _names, _capabilities in ((_UTILITY, "utility"), (_COMPUTE, "compute,video"), (_COMPUTE_PROGRAMS, "compute"),
                              (_VIDEO, "video"), (f"{_GRAPHICS} {_WITHOUT_GLVND}", "graphics,display"),
                              ("libnvidia-ngx", "ngx"),
                              ("/run/nvidia-persistenced/socket /run/nvidia-fabricmanager/socket", "utility"),
                              ("/tmp/nvidia-mps", "compute")):
    BY_CAPABILITY |= {_name: frozenset(_capabilities.split(",")) for _name in _names.split()}

# All libraries with the driver's version, and these.
BY_VERSION = frozenset(
    "libnvidia-nvvm70 libnvidia-egl-gbm libnvidia-egl-wayland libnvidia-egl-wayland2 libnvidia-egl-xcb "
    "libnvidia-egl-xlib nvidia-smi nvidia-debugdump nvidia-persistenced nvidia-cuda-mps-control "
    "nvidia-cuda-mps-server nvidia-imex nvidia-imex-ctl nvidia-xconfig nvidia_drv.so libglxserver_nvidia "
    "/run/nvidia-persistenced/socket /run/nvidia-fabricmanager/socket /tmp/nvidia-mps OpenCL/vendors/nvidia.icd "
    "vulkan/icd.d/nvidia_icd.json vulkan/icd.d/nvidia_icd.x86_64.json vulkan/icd.d/nvidia_icd.aarch64.json "
    "vulkan/icd.d/nvidia_layers.json vulkan/implicit_layer.d/nvidia_layers.json glvnd/egl_vendor.d/10_nvidia.json "
    "egl/egl_external_platform.d/15_nvidia_gbm.json egl/egl_external_platform.d/10_nvidia_wayland.json "
    "egl/egl_external_platform.d/09_nvidia_wayland2.json egl/egl_external_platform.d/20_nvidia_xcb.json "
    "egl/egl_external_platform.d/20_nvidia_xlib.json nvidia/nvoptix.bin X11/xorg.conf.d/10-nvidia.conf "
    "X11/xorg.conf.d/nvidia-drm-outputclass.conf".split())


def berths():
    """Name → capabilities, of src/gpu/probe/{driver_capabilities,files}.cpp."""
    text = OURS.read_text(encoding="utf-8")
    rows = re.findall(r'LibraryName\{"([^"]+)", "([^"]+)"', text)
    rows += re.findall(r'^      \{"([^"]+)",\s+"[^"]+",\s+"([^"]+)"\}', text, re.M)
    modules = re.findall(r'take_module\("(nvidia_drv\.so|\w+)', MODULES.read_text(encoding="utf-8"))
    rows += [(name, "graphics,display") for name in modules]
    return {name: frozenset(capabilities.split(",")) for name, capabilities in rows}


def own_versions():
    """Libraries of Berth's list whose files do not have the driver's version."""
    return set(re.findall(r'LibraryName\{"([^"]+)", "[^"]+", Version::own', OURS.read_text(encoding="utf-8")))


def differences():
    """{(name, kind)}: Berth has a file of libnvidia-container's list with fewer or more capabilities, or not at all
    (kind "fewer", "more", "none"); "new": it has one that neither list has; "not by CDI": one that only the older list
    has; "by CDI": one of the newer list that it does not have."""
    ours, out = berths(), set()
    for name, capabilities in BY_CAPABILITY.items():
        if name not in ours:
            out.add((name, "none"))
        elif ours[name] != capabilities:
            out |= {(name, "fewer")} if capabilities - ours[name] else set()
            out |= {(name, "more")} if ours[name] - capabilities else set()
    for name in ours:
        of_version = name.startswith("lib") and name not in own_versions()
        if name not in BY_CAPABILITY and name not in BY_VERSION and not of_version:
            out.add((name, "new"))
        if name in BY_CAPABILITY and name not in BY_VERSION and not of_version:
            out.add((name, "not by CDI"))
    return out | {(name, "by CDI") for name in BY_VERSION - set(ours)}
