"""What every backend must do, as checks that run against any implementation: yours, too."""
