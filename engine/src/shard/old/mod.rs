//! Records as older format versions have them, and what they are today.

pub(super) mod version_1;
