"""The deployment files, held to their promises where no container engine is at hand."""
