"""The seed's wire: subjects, message shapes and identity, by which programs that know no Python talk to remit."""
