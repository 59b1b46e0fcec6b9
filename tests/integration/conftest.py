# SPDX-License-Identifier: Apache-2.0
from support.oci_fixtures import pytest_collection_modifyitems  # noqa: F401
