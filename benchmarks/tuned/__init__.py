"""The playbook beside gradient boosting whose settings were searched for."""
