"""Refuse to copy the tool anywhere: it works on the checkout that it lies in."""

from setuptools import setup
from setuptools.command.build_py import build_py


class InPlace(build_py):
    """Builds for editable installations only."""

    def run(self) -> None:
        """Check, then build."""
        if not self.editable_mode:
            raise SystemExit("the companion tool is used from a checkout: pip install -e companion")
        super().run()


setup(cmdclass={"build_py": InPlace})
