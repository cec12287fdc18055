//! Matching what travelled as arguments to the parameters of a function.

use serde::Deserialize;

use crate::error::{ErrorType, RemoteError};
use crate::safepickle::{self, DeserializeError, Value};

/// Why arguments do not fit a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The value is no `(tuple, dict)` pair, or the dict has a key that is no string.
    #[error("arguments are not a pair of a tuple and a dict with str keys")]
    NotArguments,
    /// A parameter got nothing.
    #[error("{function}() missing required argument: '{parameter}'")]
    Missing {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// An argument fits no parameter.
    #[error("{function}() got an unexpected keyword argument '{name}'")]
    Unexpected {
        /// The function.
        function: &'static str,
        /// Its name.
        name: String,
    },
    /// More positional arguments than parameters.
    #[error("{function}() takes {takes} positional arguments but {given} were given")]
    TooMany {
        /// The function.
        function: &'static str,
        /// Parameters that can be given by position.
        takes: usize,
        /// Arguments that were.
        given: usize,
    },
    /// A parameter got two values.
    #[error("{function}() got multiple values for argument '{parameter}'")]
    Multiple {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// An argument has another type than its parameter.
    #[error("{function}() argument '{parameter}': {source}")]
    Type {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was expected and found.
        source: DeserializeError,
    },
}

impl From<BindError> for RemoteError {
    /// `ArgumentsDecodeError` for what is no pair, `TypeError` as in Python for the rest.
    fn from(error: BindError) -> Self {
        let error_type = match error {
            BindError::NotArguments => ErrorType::ArgumentsDecodeError,
            _ => ErrorType::Other("TypeError".into()),
        };
        Self::new(error_type, error.to_string())
    }
}

/// Matches arguments to parameters as a Python call does.
#[derive(Debug)]
pub struct Binder<'d> {
    function: &'static str,
    positional: Vec<Value<'d>>,
    keyword: Vec<(&'d str, Value<'d>)>,
    /// Parameters bound so far.
    bound: usize,
}

impl<'d> Binder<'d> {
    /// Takes a decoded `(args, kwargs)` pair.
    ///
    /// # Errors
    ///
    /// [`BindError::NotArguments`] when it is none.
    pub fn new(function: &'static str, value: Value<'d>) -> Result<Self, BindError> {
        let pair = value
            .tuple()
            .filter(|pair| pair.len() == 2)
            .ok_or(BindError::NotArguments)?;
        let part = |index| pair.at(index).ok_or(BindError::NotArguments);
        let positional = part(0)?
            .tuple()
            .ok_or(BindError::NotArguments)?
            .iter()
            .collect();
        let keyword = part(1)?
            .dict()
            .ok_or(BindError::NotArguments)?
            .iter()
            .map(|(key, value)| {
                key.as_str()
                    .map(|key| (key, value))
                    .ok_or(BindError::NotArguments)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            function,
            positional,
            keyword,
            bound: 0,
        })
    }

    /// Binds the next parameter, which can be given by position alone.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`] or [`BindError::Type`].
    pub fn positional<T: Deserialize<'d>>(
        &mut self,
        parameter: &'static str,
    ) -> Result<T, BindError> {
        let value = self.positional.get(self.bound).copied();
        self.bound += 1;
        self.convert(parameter, value)
    }

    /// Binds the next parameter, given by position or by name.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`], [`BindError::Multiple`] or [`BindError::Type`].
    pub fn parameter<T: Deserialize<'d>>(
        &mut self,
        parameter: &'static str,
    ) -> Result<T, BindError> {
        let value = self.take(parameter)?;
        self.convert(parameter, value)
    }

    /// Binds the next parameter, given by position or by name, to a value of any type.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`] or [`BindError::Multiple`].
    pub fn value(&mut self, parameter: &'static str) -> Result<Value<'d>, BindError> {
        let function = self.function;
        self.take(parameter)?.ok_or(BindError::Missing {
            function,
            parameter,
        })
    }

    fn take(&mut self, parameter: &'static str) -> Result<Option<Value<'d>>, BindError> {
        let by_position = self.positional.get(self.bound).copied();
        self.bound += 1;
        let by_name = self.keyword.iter().position(|(name, _)| *name == parameter);
        let by_name = by_name.map(|at| self.keyword.swap_remove(at).1);
        match (by_position, by_name) {
            (Some(_), Some(_)) => Err(BindError::Multiple {
                function: self.function,
                parameter,
            }),
            (value, None) | (None, value) => Ok(value),
        }
    }

    fn convert<T: Deserialize<'d>>(
        &self,
        parameter: &'static str,
        value: Option<Value<'d>>,
    ) -> Result<T, BindError> {
        let function = self.function;
        let value = value.ok_or(BindError::Missing {
            function,
            parameter,
        })?;
        safepickle::from_value(value).map_err(|source| BindError::Type {
            function,
            parameter,
            source,
        })
    }

    /// Checks that nothing is left over.
    ///
    /// # Errors
    ///
    /// [`BindError::TooMany`] or [`BindError::Unexpected`].
    pub fn finish(self) -> Result<(), BindError> {
        let function = self.function;
        if self.positional.len() > self.bound {
            let given = self.positional.len();
            return Err(BindError::TooMany {
                function,
                takes: self.bound,
                given,
            });
        }
        match self.keyword.first() {
            Some((name, _)) => Err(BindError::Unexpected {
                function,
                name: (*name).to_owned(),
            }),
            None => Ok(()),
        }
    }
}
