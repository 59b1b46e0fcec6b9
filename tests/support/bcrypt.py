# SPDX-License-Identifier: Apache-2.0
"""bcrypt from the system's libcrypt; Python has had no module for it since 3.13."""

import ctypes

_libcrypt = ctypes.CDLL("libcrypt.so.1")
_libcrypt.crypt.restype = _libcrypt.crypt_gensalt.restype = ctypes.c_char_p


def bcrypt(word):
    """"$2b$04$…": with the lowest cost of bcrypt. Source: crypt_gensalt(3), crypt(3)."""
    salt = _libcrypt.crypt_gensalt(b"$2b$", ctypes.c_ulong(4), None, 0)
    return _libcrypt.crypt(word.encode(), salt).decode()
