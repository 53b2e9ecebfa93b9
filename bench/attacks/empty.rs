//! Empty: this manifest exists only to fetch sources.
