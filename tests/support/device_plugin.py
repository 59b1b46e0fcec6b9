# SPDX-License-Identifier: Apache-2.0
"""A device plugin of the kubelet in Python, with Debian's grpcio and protobuf.

    plugin = DevicePlugin("test.dev/gpu", ["a", "b"], lambda ids: {"envs": {"GPUS": ",".join(ids)}})
    with plugin.serving():
        …                          # plugin.allocated: what the kubelet asked for, [["a"], …]
        plugin.set_health("a", False)
"""

import concurrent.futures
import contextlib
import functools
import pathlib
import subprocess
import tempfile
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PLUGINS = pathlib.Path("/var/lib/kubelet/device-plugins")
PROTO = pathlib.Path(__file__).parents[2] / "src/kube/api/device_plugin.proto"


@functools.cache
def messages(proto=PROTO):
    """{name: class} of the messages in a .proto file."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"--proto_path={proto.parent}", f"--descriptor_set_out={out.name}", proto],
                       check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {one.name: factory.GetPrototype(pool.FindMessageTypeByName(f"{file.package}.{one.name}"))
            for file in files.file for one in file.message_type}


def call(socket, method, request, answer, timeout=10):
    """One call without a stream: call(path, "/v1beta1.Registration/Register", request, answer's class)."""
    with grpc.insecure_channel(f"unix://{socket}") as channel:
        unary = channel.unary_unary(method, request_serializer=type(request).SerializeToString,
                                    response_deserializer=answer.FromString)
        return unary(request, timeout=timeout, wait_for_ready=True)


class DevicePlugin:
    """`answer(ids)`: the fields of ContainerAllocateResponse for these devices, as a dict; what it raises is the
    kubelet's error."""

    def __init__(self, resource, devices, answer=lambda ids: {}, options=None):
        self.resource, self.answer, self.options = resource, answer, options or {}
        self.health = {name: True for name in devices}
        self.socket = PLUGINS / f"{resource.replace('/', '_')}.sock"
        self.allocated, self.calls = [], []
        self._changed, self._number, self._ended = threading.Condition(), 0, False
        self._types = messages()

    def _list(self):
        states = {True: "Healthy", False: "Unhealthy"}
        return self._types["ListAndWatchResponse"](devices=[{"ID": name, "health": states[is_healthy]}
                                                            for name, is_healthy in self.health.items()])

    def set_health(self, name, is_healthy):
        """Tells the kubelet at once; `name` may be a new device."""
        with self._changed:
            self.health[name] = is_healthy
            self._number += 1
            self._changed.notify_all()

    # -- the kubelet's calls

    def _list_and_watch(self, _, context):
        self.calls.append("ListAndWatch")
        number = None
        while context.is_active() and not self._ended:
            with self._changed:
                if number == self._number:
                    self._changed.wait(0.2)
                    continue
                number = self._number
                told = self._list()
            yield told

    def _allocate(self, request, _):
        self.calls.append("Allocate")
        asked = [list(one.devices_ids) for one in request.container_requests]
        self.allocated += asked
        return self._types["AllocateResponse"](container_responses=[self.answer(ids) for ids in asked])

    def _tell_options(self, _, __):
        self.calls.append("GetDevicePluginOptions")
        return self._types["DevicePluginOptions"](**self.options)

    def _handlers(self):
        types = self._types
        methods = {"GetDevicePluginOptions": (self._tell_options, types["Empty"], types["DevicePluginOptions"]),
                   "Allocate": (self._allocate, types["AllocateRequest"], types["AllocateResponse"])}
        handlers = {name: grpc.unary_unary_rpc_method_handler(
            function, request_deserializer=asked.FromString, response_serializer=answer.SerializeToString)
            for name, (function, asked, answer) in methods.items()}
        handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(
            self._list_and_watch, request_deserializer=types["Empty"].FromString,
            response_serializer=types["ListAndWatchResponse"].SerializeToString)
        return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers)

    # -- start and end

    @contextlib.contextmanager
    def serving(self):
        """Serves on a socket of its own, and registers with the kubelet, which must run."""
        self._ended = False
        self.socket.unlink(missing_ok=True)
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((self._handlers(),))
        server.add_insecure_port(f"unix://{self.socket}")
        server.start()
        try:
            self.register()
            yield self
        finally:
            self._ended = True
            server.stop(None).wait(5)
            self.socket.unlink(missing_ok=True)

    def register(self):
        request = self._types["RegisterRequest"](version="v1beta1", endpoint=self.socket.name,
                                                 resource_name=self.resource, options=self.options)
        call(PLUGINS / "kubelet.sock", "/v1beta1.Registration/Register", request, self._types["Empty"])
