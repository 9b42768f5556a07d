"""Whose code is here: the liger-kernel that is installed, made importable, and the digest of its files."""
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import types


def liger_folder():
    """The folder of liger_kernel; None where there is none. Afterwards its modules can be imported without the __init__ of liger_kernel and
    liger_kernel.transformers, which load every model that they patch. That of liger_kernel.ops stays: since 0.6.5 callables are imported from it."""
    try:
        spec = importlib.util.find_spec("liger_kernel")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = list(spec.submodule_search_locations)[0]
    for name in ("liger_kernel", "liger_kernel.transformers"):
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(folder, *name.split(".")[1:])]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = module.__path__
        sys.modules[name] = module
    return folder


def files_digest(folder):
    """SHA-256 of what sha256sum prints for the package's *.py files, sorted by path: `<hex>  <path>` lines."""
    lines = []
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(at, name)
                with open(path, "rb") as f:
                    lines.append((os.path.relpath(path, folder), hashlib.sha256(f.read()).hexdigest()))
    return "sha256:" + hashlib.sha256("".join("%s  %s\n" % (h, p) for p, h in sorted(lines)).encode()).hexdigest()


def package_version(name="liger-kernel"):
    from importlib import metadata
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""  # a tree on PYTHONPATH: its files say what it is
