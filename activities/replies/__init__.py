"""The replies of models: the forms that are asked for, and how replies are read and checked."""
