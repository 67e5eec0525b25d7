"""How well the playbook ranks fraud, compared with learners that people use for the same task."""
