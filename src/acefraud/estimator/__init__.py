"""The learner for scikit-learn and river: the same playbook behind the methods that their users know.

Imports only the public names of `acefraud` and `acefraud.errors`; scikit-learn, river and matplotlib are extras.
"""
