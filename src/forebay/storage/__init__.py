"""Datasets on disk: Arrow IPC files with a manifest beside them, written atomically and read by row number."""
