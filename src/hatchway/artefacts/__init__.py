"""What lies on disk, and how it is trusted: atomic writes, manifests, bundles."""
