"""How well the playbook ranks fraud, beside learners that people use for the same task."""
