"""Everything that is not public: the folders are the layers of `docs/architecture.md`."""
