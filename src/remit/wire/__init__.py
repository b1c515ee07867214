"""The agentic wire of SemStreams: subjects, message shapes and identity, by which programs that know no Python talk to remit."""
