"""An executor whose workers are processes."""

from forebay.run.process.executor import ProcessExecutor

__all__ = ["ProcessExecutor"]
